// SPDX-License-Identifier: Apache-2.0
// Runs one command in the foreground and stands between it and the signals sent to us.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace softnic::cli {

// Forks, calls `prepare` in the child, runs `command` by PATH and waits for it. Returns its exit
// status; 128 + N if signal N ended it; 127 if there is no such command, 126 if it cannot be run.
// Processes that it leaves in the background are not waited for.
int run_child(const std::vector<std::string>& command, const std::function<void()>& prepare);

}  // namespace softnic::cli
