// SPDX-License-Identifier: Apache-2.0
//
// The messages of a sending end that several paths carry, in chunks, and that are not finished.
// A path takes only as much as it will move soon. The chunks that no path carries yet wait here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/transfer/memory_handle.h"
#include "plugin/transfer/request.h"
#include "plugin/transfer/scheduler.h"
#include "plugin/wire/chunks.h"
#include "plugin/wire/limits.h"

namespace beeline {

struct SplitMessage {
  Request* request = nullptr;  // null: the record is free
  std::uint64_t source = 0;    // address of the data
  const MemoryHandle* memory = nullptr;
  wire::ChunkMask unsent = 0;                            // no path carries them yet
  wire::ChunkMask announced = 0;                         // chunks that a notice has named
  std::array<wire::ChunkMask, wire::kMaxRails> carried;  // by path: the chunks that it was given
  std::array<std::uint8_t, wire::kMaxRails> under_way;   // by path: completions to come
  PathMask usable = 0;                                   // paths that can carry it

  std::uint32_t size() const noexcept { return request->sizes[0]; }
};

class SplitMessages {
 public:
  static constexpr std::size_t kMost = 32;

  // Null if there are too many. Nothing of the message is sent yet.
  SplitMessage* add(Request& request, std::uint64_t source, const MemoryHandle& memory,
                    PathMask usable) noexcept;
  // No path carries the message any more. A request whose message was not split is ignored.
  void forget(Request& request) noexcept;

  // The record of a request whose message is split.
  SplitMessage& of(const Request& request) noexcept { return messages_[request.split - 1U]; }
  // Chunks that a path has lost have to be sent again: they are `unsent` now.
  void wait_again(SplitMessage& message) noexcept;

  bool is_waiting() const noexcept { return waiting_count_ != 0; }
  // Calls `assign` for each message with chunks that no path carries, oldest first. It takes chunks
  // out of `unsent`.
  template <class Assign>
  void each_waiting(Assign&& assign) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < waiting_count_; ++i) {
      SplitMessage& message = messages_[waiting_[i]];
      assign(message);
      if (message.unsent != 0) waiting_[kept++] = waiting_[i];
    }
    waiting_count_ = kept;
  }

 private:
  std::array<SplitMessage, kMost> messages_;
  std::array<std::uint8_t, kMost> waiting_{};  // records with unsent chunks, oldest first
  std::size_t waiting_count_ = 0;
};

}  // namespace beeline
