// SPDX-License-Identifier: Apache-2.0
// Runs one command in the foreground and forwards signals to it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace softnic::cli {

// Forks, calls `prepare` in the child, executes `command` (searched in PATH) and waits for it.
// Returns its exit status; 128 + N if signal N ended it; 127 if there is no such command, 126 if it
// cannot be executed. Does not wait for processes that the command leaves in the background.
int run_child(const std::vector<std::string>& command, const std::function<void()>& prepare);

}  // namespace softnic::cli
