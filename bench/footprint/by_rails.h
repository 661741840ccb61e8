// SPDX-License-Identifier: Apache-2.0
//
// The memory of a comm by the number of its rails. The plugin reads its parameters once, so each
// number is measured in a process of its own.
#pragma once

#include <cstddef>
#include <functional>

namespace beeline::bench {

struct Measured {
  double kib = 0;             // of one comm, the mean of sender and receiver
  std::size_t in_flight = 0;  // the most buffers that a comm accepted at once
};

// Prints a table. `measure` loads the plugin; it is called in child processes.
void print_by_rails(const std::function<Measured()>& measure);

}  // namespace beeline::bench
