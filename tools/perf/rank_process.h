// SPDX-License-Identifier: Apache-2.0
//
// One rank's process: sets up its environment, loads the plugin, runs the pattern and reports the
// end.
#pragma once

#include "tools/perf/options.h"
#include "tools/perf/pattern.h"
#include "tools/perf/team.h"

namespace beeline::perf {

// Returns the exit status of the process. The plugin must not have been loaded before.
int run_rank(const Options& options, const Pattern& pattern, Team team);

}  // namespace beeline::perf
