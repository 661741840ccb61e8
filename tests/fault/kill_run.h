// SPDX-License-Identifier: Apache-2.0
//
// One run of the scenario: a fabric of its own, a victim, a survivor, and a newcomer who comes when
// the victim is gone.
#pragma once

#include "tests/fault/kill_sites.h"

namespace beeline::test {

// The victim plays this side of the scenario: 0 or 1.
KillResult run_with_victim(int side, const KillOrder& order);

}  // namespace beeline::test
