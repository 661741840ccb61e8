// SPDX-License-Identifier: Apache-2.0
//
// Where this process's memory lies, as the kernel accounts for it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace beeline::bench {

// A range of addresses with a name of its own.
struct NamedRange {
  std::string name;
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// KiB of proportional set size, by kind: the range, the C library's heap, the rest of what has no
// file, and files by the name of their folder or of themselves.
std::map<std::string, double> read_memory(const NamedRange& apart);

// KiB of all, as /proc/self/smaps_rollup has it.
double proportional_set_kib();

}  // namespace beeline::bench
