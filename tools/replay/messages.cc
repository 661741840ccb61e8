// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/messages.h"

#include <fmt/format.h>

#include <algorithm>

namespace beeline::replay {

std::vector<MessageRun> last_messages(const SlotView& connection) {
  std::vector<MessageRun> runs;
  if (connection.sizes.empty()) return runs;
  const Counter known = connection.role == SlotRole::kSend ? Counter::kMessages : Counter::kGrants;
  const std::uint64_t end = connection[known];
  const std::uint64_t places = connection.sizes.size();
  for (std::uint64_t number = end - std::min(end, places); number < end; ++number) {
    const std::uint32_t bytes = connection.sizes[number % places];
    if (runs.empty() || runs.back().bytes != bytes) {
      runs.push_back({.first = number + 1, .count = 0, .bytes = bytes});
    }
    ++runs.back().count;
  }
  return runs;
}

std::string text_of(const MessageRun& run) {
  std::string text = run.count == 1
                         ? fmt::format("message {}", run.first)
                         : fmt::format("messages {} to {}", run.first, run.first + run.count - 1);
  if (run.bytes == BEELINE_STATS_UNDER_WAY) return text + ": awaited";
  return text + fmt::format(": {} byte{}{}", run.bytes, run.bytes == 1 ? "" : "s",
                            run.count > 1 ? " each" : "");
}

}  // namespace beeline::replay
