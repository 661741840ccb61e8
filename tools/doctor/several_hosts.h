// SPDX-License-Identifier: Apache-2.0
//
// `beeline doctor` on several hosts: what differs between them, and which rails reach each other at
// which speed.
#pragma once

#include "tools/doctor/options.h"

namespace beeline::doctor {

// Returns the exit status.
int look_at_several_hosts(const Options& options);

}  // namespace beeline::doctor
