// SPDX-License-Identifier: Apache-2.0
//
// Checks the options of the command line and their combination.
#pragma once

#include "tools/perf/options.h"

namespace beeline::perf {

// Returns the first mistake: the option, its value, and the accepted values.
Outcome<bool> check_options(const Options& options);

}  // namespace beeline::perf
