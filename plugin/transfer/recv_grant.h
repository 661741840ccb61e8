// SPDX-License-Identifier: Apache-2.0
//
// The part of RecvComm that grants buffers. In a header: each version of irecv becomes one function
// that reads NCCL's arrays and writes credit lines from them.
#pragma once

#include <arpa/inet.h>

#include <cstdint>
#include <cstring>

#include "plugin/transfer/recv_comm.h"

namespace beeline {

// Only one grant in this many is signaled: its completion frees the places of all of them in the
// send queue.
inline constexpr std::uint32_t kSignalGrantsEvery = 16;

template <class Count, class BufferAt>
BL_INLINED Errc RecvComm::irecv(Count count, BufferAt&& buffer_at, Need need, void** request) {
  gate_.enter();
  if (gate_.is_alarmed()) [[unlikely]] {
    bool may = false;
    if (const Errc code = may_begin("irecv", &may); !may) return leave_with(code);
    if (!has_usable_path() || is_any_missing(count, buffer_at)) return leave_with(Errc::kOk);
  }
  if (!has_room() && !make_room()) [[unlikely]]
    return leave_with(Errc::kOk);
  if (spare_receives_ < count) [[unlikely]] {
    const Errc code = post_receives_for(count);
    if (spare_receives_ < count) return leave_with(code);
  }
  const std::uint32_t first = next_;
  const std::uint32_t written = rails() == wire::Rails::kFew
                                    ? write_lines(count, buffer_at, need, wire::Rails::kFew)
                                    : write_lines(count, buffer_at, need, wire::Rails::kMany);
  if (written != count) [[unlikely]]
    return leave_with(withdraw_lines(written));
  Request& made = free_requests_.take();
  *request = &made;
  made.line = first;
  made.count = static_cast<std::uint8_t>(count);
  made.missing = need == Need::kArrival ? static_cast<std::uint8_t>(count) : std::uint8_t{0};
  made.sizes[0] = 0;  // reported if the receive is optional and done before the data
  next_ += count;
  spare_receives_ -= count;
  if (const Errc code = grant(first, count); code != Errc::kOk) [[unlikely]] {
    *request = nullptr;
    return leave_with(code);
  }
  watch_.moved();
  stats_.record(Event::kGrant, count, first);
  // Nobody may test for its arrival, and failures have to be noticed all the same.
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
  return grant_path_->send_free >= 2;
}

// Writes the lines and the table of their owners. Returns how many: requests may be finished in any
// order, and a line can be used again only after its message has come. The epoch of a line is
// always 0, so that a line that is written again has the same bytes.
template <class Count, class BufferAt>
BL_INLINED std::uint32_t RecvComm::write_lines(Count count, BufferAt& buffer_at, Need need,
                                               wire::Rails rails) noexcept {
  const std::uint32_t first = next_;
  std::uint64_t order = wire::order_of(first + 1, 0, static_cast<std::uint8_t>(count), 0);
  std::uint64_t owner = free_requests_.first().slot | std::uint64_t{1} << 16 |
                        std::uint64_t{need == Need::kNothing} << 24 | grant_path_->owner_bits |
                        std::uint64_t{first} << 32;
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
  DataPath& path = *grant_path_;
  const std::size_t at = first % wire::kMaxLines * sizeof(wire::CreditLine);
  grant_sge_.addr = reinterpret_cast<std::uint64_t>(lines_) + at;
  grant_sge_.length = count * static_cast<std::uint32_t>(sizeof(wire::CreditLine));
  grant_wr_.send_flags = grant_sge_.length <= path.max_inline ? IBV_SEND_INLINE : 0;
  if (++path.silent_grants == kSignalGrantsEvery) [[unlikely]] {
    grant_wr_.send_flags |= IBV_SEND_SIGNALED;
    path.silent_grants = 0;
  }
  grant_wr_.wr.rdma.remote_addr = ring_address_ + at;
  ibv_send_wr* refused;
  if (const int rc = ibv_post_send(path.qp, &grant_wr_, &refused); rc != 0) [[unlikely]] {
    return events_.on_refused(*this, path, rc, "grant receives");
  }
  --path.send_free;
  return Errc::kOk;
}

BL_INLINED void RecvComm::absorb_one(DataPath& path, const ibv_wc& completion) {
  watch_.moved();
  if (on_immediate(completion)) [[likely]] {
    stats_.add_messages(1, completion.byte_len);
  } else {
    on_other(path, completion);
  }
  if (flushes_in_test()) [[unlikely]]
    flush_arrived();
}

// True: a message has arrived that a receive waits for.
BL_INLINED bool RecvComm::on_immediate(const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS || completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
      [[unlikely]] {
    return false;
  }
  const wire::Immediate news = wire::unpack(ntohl(completion.imm_data));
  Owner& owner = owners_[news.line % wire::kMaxLines];
  if (!owner.waits || static_cast<std::uint16_t>(owner.position) != news.line ||
      completion.byte_len > lines_[news.line % wire::kMaxLines].capacity) [[unlikely]] {
    return false;
  }
  arrived(owner, completion.byte_len);
  return true;
}

BL_INLINED void RecvComm::arrived(Owner& owner, std::uint32_t size) noexcept {
  owner.waits = false;
  if (owner.orphan) return;
  Request& request = requests_[owner.request];
  request.sizes[owner.index] = size;
  --request.missing;
}

}  // namespace beeline
