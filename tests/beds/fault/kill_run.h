// SPDX-License-Identifier: Apache-2.0
//
// One run of the scenario on a fabric of its own: a victim, a survivor, and a newcomer that starts
// when the victim has ended.
#pragma once

#include "tests/beds/fault/kill_sites.h"

namespace beeline::test {

// The victim plays this side of the scenario: 0 or 1.
KillResult run_with_victim(int side, const KillOrder& order);

}  // namespace beeline::test
