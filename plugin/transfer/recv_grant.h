// SPDX-License-Identifier: Apache-2.0
//
// The part of RecvComm that grants buffers, in a header: each version of irecv becomes one function
// that reads NCCL's arrays straight into credit lines.
#pragma once

#include <cstring>

#include "plugin/transfer/recv_comm.h"

namespace beeline {

// Grants are signalled now and then only, to take their places in the send queue back.
inline constexpr std::uint32_t kSignalGrantsEvery = 16;

template <class Count, class BufferAt>
BL_INLINED Errc RecvComm::irecv(Count count, BufferAt&& buffer_at, Need need, void** request) {
  if (disturbed()) [[unlikely]] {
    bool may = false;
    if (const Errc code = may_begin("irecv", &may); !may) return code;
  }
  if (!has_room() && !make_room()) [[unlikely]]
    return Errc::kOk;
  if (spare_receives_ < count) [[unlikely]] {
    if (const Errc code = post_receives_for(count); code != Errc::kOk) return code;
  }
  const std::uint32_t first = next_;
  const std::uint32_t written = rails() == wire::Rails::kFew
                                    ? write_lines(count, buffer_at, need, wire::Rails::kFew)
                                    : write_lines(count, buffer_at, need, wire::Rails::kMany);
  if (written != count) [[unlikely]]
    return take_back(written);
  Request& made = free_requests_.take();
  *request = &made;
  made.line = first;
  made.count = static_cast<std::uint8_t>(count);
  made.missing = need == Need::kArrival ? static_cast<std::uint8_t>(count) : std::uint8_t{0};
  made.sizes[0] = 0;  // what test() reports of one that nobody needs to know of
  next_ += count;
  spare_receives_ -= count;
  if (const Errc code = grant(first, count); code != Errc::kOk) [[unlikely]] {
    *request = nullptr;
    return code;
  }
  watch_.moved();
  stats_.record(Event::kGrant, count, first);
  // Nobody may test for what is to come, and failures have to be seen.
  if (need == Need::kNothing) [[unlikely]]
    collect();
  return Errc::kOk;
}

BL_INLINED bool RecvComm::has_room() noexcept {
  // Two: a grant is two writes where the ring wraps.
  if (free_requests_.empty()) return false;
  if (free_requests_.first().slot >= kFirstForFlushes) [[unlikely]] {
    set_flushes_apart();
    if (free_requests_.empty()) return false;
  }
  return first_path().send_free >= 2;
}

// What the lines say, and whom they belong to. Returns how many could be written: requests may be
// finished in any order, and a line can be used again only when its message came.
template <class Count, class BufferAt>
BL_INLINED std::uint32_t RecvComm::write_lines(Count count, BufferAt& buffer_at, Need need,
                                               wire::Rails rails) noexcept {
  const std::uint32_t first = next_;
  std::uint64_t order =
      wire::order_of(first + 1, 0, static_cast<std::uint8_t>(count), first_path().epoch);
  std::uint64_t owner = free_requests_.first().slot | std::uint64_t{1} << 16 |
                        std::uint64_t{need == Need::kNothing} << 24 | std::uint64_t{first} << 32;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t place = (first + i) % wire::kMaxLines;
    const ReceiveBuffer buffer = buffer_at(i);
    if (owners_[place].waits) [[unlikely]]
      return i;
    if (!is_valid(buffer)) [[unlikely]]
      return i;
    wire::write_line(lines_[place],
                     {.address = reinterpret_cast<std::uint64_t>(buffer.data),
                      .capacity = static_cast<std::uint32_t>(buffer.capacity),
                      .tag = buffer.tag,
                      .rkeys = &buffer.memory->rkeys},
                     order, rails);
    std::memcpy(&owners_[place], &owner, sizeof owner);
    order += wire::kNextLine;
    owner += kNextOwner;
  }
  return count;
}

// One write for all lines, unless they go around the end of the ring.
BL_INLINED Errc RecvComm::grant(std::uint32_t first, std::uint32_t count) {
  const std::uint32_t before_end =
      std::uint32_t{wire::kMaxLines} - first % std::uint32_t{wire::kMaxLines};
  if (count > before_end) [[unlikely]]
    return grant_around_end(first, count, before_end);
  return post_grant(first, count);
}

BL_INLINED Errc RecvComm::post_grant(std::uint32_t first, std::uint32_t count) {
  PathState& path = first_path();
  const std::size_t at = first % wire::kMaxLines * sizeof(wire::CreditLine);
  grant_sge_.addr = reinterpret_cast<std::uint64_t>(lines_) + at;
  grant_sge_.length = count * static_cast<std::uint32_t>(sizeof(wire::CreditLine));
  grant_wr_.send_flags = grant_sge_.length <= path.max_inline ? IBV_SEND_INLINE : 0;
  if (++silent_ == kSignalGrantsEvery) [[unlikely]] {
    grant_wr_.send_flags |= IBV_SEND_SIGNALED;
    silent_ = 0;
  }
  grant_wr_.wr.rdma.remote_addr = connection_.window.address + at;
  ibv_send_wr* refused;
  if (const int rc = ibv_post_send(path.qp, &grant_wr_, &refused); rc != 0) [[unlikely]] {
    return refused_by_device(rc, "grant receives").error().code;
  }
  --path.send_free;
  return Errc::kOk;
}

}  // namespace beeline
