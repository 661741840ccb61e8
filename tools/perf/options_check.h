// SPDX-License-Identifier: Apache-2.0
//
// Whether what the command line says makes sense as a whole.
#pragma once

#include "tools/perf/options.h"

namespace beeline::perf {

// The first thing that does not: the option, its value, and what may stand there.
tools::Outcome<bool> check_options(const Options& options);

}  // namespace beeline::perf
