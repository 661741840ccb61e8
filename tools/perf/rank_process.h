// SPDX-License-Identifier: Apache-2.0
//
// The life of one rank's process: environment, plugin, pattern, end.
#pragma once

#include "tools/perf/options.h"
#include "tools/perf/pattern.h"
#include "tools/perf/team.h"

namespace beeline::perf {

// Returns the process's exit status. Nothing of the plugin has been touched before.
int run_rank(const Options& options, const Pattern& pattern, Team team);

}  // namespace beeline::perf
