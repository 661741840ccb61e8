// SPDX-License-Identifier: Apache-2.0
//
// Runs of schedules, as the program and the tests make them.
#pragma once

#include <string>

#include "tests/plugin/simulation/world.h"

namespace beeline::simulation {

// Also if the world cannot be made: that is a violation, too. With `log`, all lines of the plugin's
// log are printed; without, `RunResult::ending` has the first that says why a comm has ended.
RunResult run(const RunOptions& options, bool log = false);
// From a text that to_text() has made. Throws if it is not understood.
RunResult run_text(const std::string& text);

// The least schedule that still breaks a promise: without faults that are not needed, with fewer
// comms and shorter faults. `options` breaks one.
RunOptions shrink(RunOptions options);

}  // namespace beeline::simulation
