// SPDX-License-Identifier: Apache-2.0
//
// `beeline doctor`: looks at a host, live or recorded, and says what is wrong with it.
#pragma once

#include "tools/doctor/options.h"

namespace beeline::doctor {

// Returns the exit status.
int run(const Options& options);

}  // namespace beeline::doctor
