// SPDX-License-Identifier: Apache-2.0
//
// The memory of this process, as the kernel accounts for it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace beeline::bench {

// A named range of addresses.
struct NamedRange {
  std::string name;
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// Resident set size in KiB, by kind: the named range, the C library's heap, other anonymous
// memory, and files by the name of their folder or their own.
std::map<std::string, double> read_memory(const NamedRange& apart);

// The total in KiB, from /proc/self/smaps_rollup.
double resident_set_kib();

}  // namespace beeline::bench
