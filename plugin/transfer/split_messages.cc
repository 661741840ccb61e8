// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/split_messages.h"

#include <algorithm>

#include "common/check/assert.h"

namespace beeline {

SplitMessage* SplitMessages::add(Request& request, std::uint64_t source, const MemoryHandle& memory,
                                 PathMask usable) noexcept {
  const auto free = std::ranges::find(messages_, nullptr, &SplitMessage::request);
  if (free == messages_.end()) return nullptr;
  *free = {.request = &request,
           .source = source,
           .memory = &memory,
           .unsent = wire::all_chunks_of(request.sizes[0]),
           .carried = {},
           .under_way = {},
           .usable = usable};
  const auto index = static_cast<std::uint8_t>(free - messages_.begin());
  request.split = static_cast<std::uint8_t>(index + 1);
  waiting_[waiting_count_++] = index;
  return &*free;
}

void SplitMessages::wait_again(SplitMessage& message) noexcept {
  BL_ASSERT(waiting_count_ < kMost, "a message waits once");
  waiting_[waiting_count_++] = static_cast<std::uint8_t>(&message - messages_.data());
}

void SplitMessages::forget(Request& request) noexcept {
  if (request.split == 0) return;
  const auto index = static_cast<std::uint8_t>(request.split - 1);
  request.split = 0;
  messages_[index].request = nullptr;
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(waiting_count_);
  waiting_count_ =
      static_cast<std::size_t>(std::remove(waiting_.begin(), end, index) - waiting_.begin());
}

}  // namespace beeline
