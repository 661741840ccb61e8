// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/pin.h"

#include <fmt/format.h>
#include <sched.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace beeline::perf {
namespace {

std::vector<size_t> processors(const cpu_set_t& set) {
  std::vector<size_t> found;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
  }
  return found;
}

}  // namespace

Outcome<bool> pin_rank(int rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    const std::vector<size_t> allowed = processors(set);
    CPU_ZERO(&set);
    CPU_SET(allowed[static_cast<size_t>(rank) % allowed.size()], &set);
    if (::sched_setaffinity(0, sizeof set, &set) == 0) return true;
  }
  return fail(
      fmt::format("--pin: cannot pin rank {} to a processor: {}", rank, std::strerror(errno)));
}

}  // namespace beeline::perf
