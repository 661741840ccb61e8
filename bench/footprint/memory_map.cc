// SPDX-License-Identifier: Apache-2.0
#include "bench/footprint/memory_map.h"

#include <fstream>
#include <sstream>

namespace beeline::bench {
namespace {

// glibc places the heaps of threads at multiples of this.
constexpr std::uintptr_t kHeapAlign = std::uintptr_t{64} << 20;

std::string kind_of(std::uintptr_t begin, std::uintptr_t end, const std::string& path,
                    const NamedRange& apart) {
  if (begin >= apart.begin && end <= apart.end) return apart.name;
  if (path == "[heap]") return "the C library's heap";
  if (path.empty()) {
    return begin % kHeapAlign == 0 ? "the C library's heap" : "anonymous maps";
  }
  if (path.starts_with("/dev/shm/")) return "pages in /dev/shm";
  if (path.starts_with("[")) return path;
  return "programs and libraries";
}

}  // namespace

std::map<std::string, double> read_memory(const NamedRange& apart) {
  std::map<std::string, double> kib;
  std::ifstream file("/proc/self/smaps");
  std::string kind;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (!first.ends_with(":")) {  // "7f00-7f01 rw-p 0000 00:00 12   /a/file"
      std::string skipped;
      std::string path;
      words >> skipped >> skipped >> skipped >> skipped >> path;
      const std::size_t dash = first.find('-');
      kind = kind_of(std::stoull(first.substr(0, dash), nullptr, 16),
                     std::stoull(first.substr(dash + 1), nullptr, 16), path, apart);
    } else if (first == "Rss:") {
      double amount = 0;
      words >> amount;
      kib[kind] += amount;
    }
  }
  return kib;
}

double resident_set_kib() {
  std::ifstream file("/proc/self/smaps_rollup");
  double kib = 0;
  for (std::string word; file >> word;) {
    if (word == "Rss:") file >> kib;
  }
  return kib;
}

}  // namespace beeline::bench
