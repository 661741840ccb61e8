// SPDX-License-Identifier: Apache-2.0
//
// What most sends do: take the credit line that is next and write the payload where it says. In a
// header, to become part of the exported isend; and in two halves, so that all is written down
// before the device is called, and neither half needs a stack to remember things on.
#pragma once

#include <arpa/inet.h>

#include "plugin/transfer/send_comm.h"

namespace beeline {

BL_INLINED SendComm::Begun SendComm::begin(const void* data, std::size_t size, int tag,
                                           const MemoryHandle& memory, void** made) noexcept {
  const wire::CreditLine& line = *awaited_;
  wire::LineWords words;
  words[6] = wire::order_in(line);
  if (words[6] != awaited_order_ || disturbed()) [[unlikely]] {
    if (wire::number_of(words[6] ^ awaited_order_) != 0 && !disturbed()) return no_credit();
    prepare(data, size, memory);
    return Begun::kOtherwise;
  }
  prepare(data, size, memory);
  words[0] = wire::word_of(line, 0);
  wr_.wr.rdma.remote_addr = words[0];  // no harm if nothing is posted, and keeps registers free
  words[1] = wire::word_of(line, 1);
  words[2] = wire::word_of(line, 2);
  wr_.wr.rdma.rkey = static_cast<std::uint32_t>(words[2]);
  // Half of a line is none.
  if (wire::word_of(line, 7) != wire::sum_of(words, wire::Rails::kFew)) [[unlikely]]
    return Begun::kOtherwise;
  if (static_cast<std::int32_t>(words[1] >> 32) != tag) [[unlikely]]
    return Begun::kOtherwise;
  if (size > static_cast<std::uint32_t>(words[1]) || size - 1 >= most_at_once_) [[unlikely]]
    return Begun::kOtherwise;
  if (!has_room(1)) [[unlikely]]
    return Begun::kOtherwise;
  const auto bytes = static_cast<std::uint32_t>(size);
  const std::uint32_t number = wire::number_of(words[6]);
  stats_.add_message(bytes);
  awaited_order_ = wire::order_after(words[6]);
  awaited_ = &ring_[number % wire::kMaxLines];
  Request& request = open_request(number - 1, bytes, 1);
  fill_in(request);
  *made = &request;
  made_ = made;
  return Begun::kTaken;
}

BL_INLINED Errc SendComm::post_taken() {
  PathState& path = first_path();
  --path.send_free;
  watch_.moved();
  if (const int rc = ibv_post_send(path.qp, &wr_, &refused_); rc != 0) [[unlikely]]
    return take_back_taken(rc);
  // The last send of each receive is an event.
  if (wire::index_of(awaited_order_) == 0) note_last();
  return Errc::kOk;
}

BL_INLINED void SendComm::prepare(const void* data, std::size_t size,
                                  const MemoryHandle& memory) noexcept {
  sge_.addr = reinterpret_cast<std::uint64_t>(data);
  sge_.length = static_cast<std::uint32_t>(size);
  sge_.lkey = memory.lkeys[0];
  wr_.send_flags =
      size > first_path().max_inline ? unsigned{IBV_SEND_SIGNALED} : memory.short_send_flags;
}

BL_INLINED Request& SendComm::open_request(std::uint32_t position, std::uint32_t size,
                                           std::uint32_t wrs) noexcept {
  Request& request = free_requests_.take();
  request.line = position;
  request.count = 1;
  request.missing = 1;
  request.wrs = static_cast<std::uint16_t>(wrs);
  request.sizes[0] = size;
  return request;
}

// One write carries all of it, and the news of its arrival.
BL_INLINED void SendComm::fill_in(const Request& request) noexcept {
  wr_.wr_id = request.slot;
  wr_.imm_data = htonl(
      wire::pack({.line = static_cast<std::uint16_t>(request.line), .epoch = first_path().epoch}));
}

}  // namespace beeline
