// SPDX-License-Identifier: Apache-2.0
//
// The memory of a comm by the number of its rails. The plugin reads its parameters once, so each
// number is measured in a process of its own.
#pragma once

#include <functional>

namespace beeline::bench {

// Prints a table. `measure` loads the plugin and returns the KiB of one comm, the mean of sender
// and receiver; it is called in child processes.
void print_by_rails(const std::function<double()>& measure);

}  // namespace beeline::bench
