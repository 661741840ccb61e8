// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/control/near_cpus.h"

#include <cerrno>
#include <charconv>
#include <cstring>

#include "common/base/log.h"

namespace beeline {
namespace {

struct CpuRange {
  int first = 0;
  int last = 0;
};

bool take_number(std::string_view& text, int& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// Parses "5" or "0-31", and the comma behind it.
std::optional<CpuRange> take_range(std::string_view& text) noexcept {
  CpuRange range;
  if (!take_number(text, range.first)) return std::nullopt;
  range.last = range.first;
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    if (!take_number(text, range.last) || range.last < range.first) return std::nullopt;
  }
  if (text.empty()) return range;
  if (!text.starts_with(',') || text.size() == 1) return std::nullopt;
  text.remove_prefix(1);
  return range;
}

}  // namespace

std::optional<cpu_set_t> allowed_cpus(std::string_view list, const cpu_set_t& allowed) noexcept {
  cpu_set_t common;
  CPU_ZERO(&common);
  while (!list.empty()) {
    const auto range = take_range(list);
    if (!range) return std::nullopt;
    for (int cpu = range->first; cpu <= range->last && cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &common);
    }
  }
  return CPU_COUNT(&common) > 0 ? std::optional(common) : std::nullopt;
}

void run_near(std::string_view list) noexcept {
  cpu_set_t allowed;
  // sched_getaffinity fails on a machine with more processors than the set holds.
  if (list.empty() || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const auto near = allowed_cpus(list, allowed);
  if (!near || CPU_EQUAL(&*near, &allowed)) return;
  if (::sched_setaffinity(0, sizeof *near, &*near) != 0) {
    BL_INFO(kLogInit, "the control thread is not bound to the processors near the NICs: %s",
            std::strerror(errno));
  }
}

}  // namespace beeline
