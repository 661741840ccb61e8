// SPDX-License-Identifier: Apache-2.0
//
// The part of RecvComm that grants buffers. In a header: each version of irecv becomes two
// functions that read NCCL's arrays and write credit lines from them. One of them is the fast
// irecv, of one buffer. It calls nothing; a second function posts what it has written. So GCC 12
// need not save the registers that it uses.
#pragma once

#include <arpa/inet.h>

#include <cstdint>
#include <cstring>

#include "plugin/transfer/recv_comm.h"

namespace beeline {

template <Paths kPaths>
BL_INLINED Path& RecvComm::path_of_grants() noexcept {
  return kPaths == Paths::kOne ? only_path() : grants_.path();
}

template <Paths kPaths>
BL_INLINED bool RecvComm::begin_grant(std::size_t capacity, const MemoryHandle* memory) noexcept {
  const std::size_t limit = kPaths == Paths::kOne ? fast_limit_ : wire::kMaxMessageBytes + 1;
  const bool is_fast = capacity < limit && memory != nullptr && !free_requests_.empty() &&
                       free_requests_.first().slot < kFirstForFlushes &&
                       path_of_grants<kPaths>().send_free != 0 && spare_receives_ != 0 &&
                       !table_.owner(next_ % wire::kMaxLines).waits();
  if (!is_fast) [[unlikely]]
    gate_.leave();
  return is_fast;
}

template <Paths kPaths>
BL_INLINED void RecvComm::write_grant(const ReceiveBuffer& buffer, void** request) noexcept {
  const std::uint32_t position = next_;
  const std::uint32_t place = position % wire::kMaxLines;
  Request& made = free_requests_.take();
  wire::CreditLine& line = lines_[place];
  wire::write_line(line, credit_of(buffer), wire::order_of(position + 1, 0, 1, 0),
                   kPaths == Paths::kOne ? wire::Rails::kFew : rails());
  // With one path, whose index is 0, it need not be read.
  const std::uint64_t path = kPaths == Paths::kOne ? 0 : path_of_grants<kPaths>().index;
  const std::uint64_t owner = Owner::packed(made.slot, Owner::kAwaited, path, position);
  std::memcpy(&table_.owner(place), &owner, sizeof owner);
  stats_.add_grant(position);
  *request = &made;
  made.line = position;
  made.count = 1;
  made.missing = 1;
  made.wrs = 0;  // so that the compiler writes all three at once
  made.sizes[0] = static_cast<std::uint32_t>(buffer.capacity);
  next_ = position + 1;
  --spare_receives_;
  made_ = request;
  grants_.describe(line);
}

template <Paths kPaths>
BL_INLINED Errc RecvComm::post_written() {
  if (const int rc = grants_.post(path_of_grants<kPaths>()); rc != 0) [[unlikely]]
    return on_refused_grant(rc);
  watch_.moved();
  return Errc::kOk;
}

template <class Count, class BufferAt>
BL_INLINED Errc RecvComm::irecv(Count count, BufferAt&& buffer_at, Need need, void** request) {
  gate_.enter();
  if (gate_.is_alarmed()) [[unlikely]] {
    bool may = false;
    if (const Errc code = may_begin("irecv", &may); !may) return leave_with(code);
    if (!has_usable_path()) return leave_with(Errc::kOk);
    if (is_any_missing(count, buffer_at)) {
      collect();  // NCCL may have no request to test
      return leave_with(Errc::kOk);
    }
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
  if (need == Need::kNothing) made.sizes[0] = 0;  // which test reports, since it is done at once
  next_ += count;
  stats_.add(Counter::kGrants, count);
  spare_receives_ -= count;
  if (const Errc code = grant(first, count); code != Errc::kOk) [[unlikely]] {
    *request = nullptr;
    return leave_with(code);
  }
  watch_.moved();
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
  return grants_.path().send_free >= 2;
}

// Writes the lines and the table of their owners. Returns how many: requests may be finished in any
// order, and a line can be used again only after its message has come. The epoch of a line is
// always 0, so that a line that is written again has the same bytes.
template <class Count, class BufferAt>
BL_INLINED std::uint32_t RecvComm::write_lines(Count count, BufferAt& buffer_at, Need need,
                                               wire::Rails rails) noexcept {
  const std::uint32_t first = next_;
  std::uint64_t order = wire::order_of(first + 1, 0, static_cast<std::uint8_t>(count), 0);
  const auto state = need == Need::kArrival ? Owner::kAwaited : Owner::kOptional;
  std::uint64_t owner =
      Owner::packed(free_requests_.first().slot, state, grants_.path().index, first);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t place = (first + i) % wire::kMaxLines;
    const ReceiveBuffer buffer = buffer_at(i);
    if (table_.owner(place).waits()) [[unlikely]]
      return i;
    if (!is_valid(buffer)) [[unlikely]]
      return i;
    wire::write_line(lines_[place], credit_of(buffer), order, rails);
    std::memcpy(&table_.owner(place), &owner, sizeof owner);
    free_requests_.first().sizes[i] = static_cast<std::uint32_t>(buffer.capacity);
    stats_.set_size(place, BEELINE_STATS_UNDER_WAY);
    order += wire::kNextLine;
    owner += LineTable::kNextOwner;
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
  Path& path = grants_.path();
  const int rc = grants_.write(lines_[first % wire::kMaxLines], count);
  return rc == 0 ? Errc::kOk : events_.on_refused(*this, path, rc, "grant receives");
}

// False: it is left to absorb().
BL_INLINED bool RecvComm::absorb_one(const ibv_wc& completion) noexcept {
  const std::uint32_t bytes = completion.byte_len;
  const int place = on_immediate(completion);
  if (place < 0) [[unlikely]]
    return false;
  watch_.moved();
  stats_.add_message(static_cast<std::uint32_t>(place), bytes);
  return true;
}

// If a message has arrived that a receive waits for, returns the place of its line. Until then,
// `sizes` of the request has the size of the buffer.
BL_INLINED int RecvComm::on_immediate(const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS || completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
      [[unlikely]] {
    return -1;
  }
  const wire::Immediate news = wire::unpack(ntohl(completion.imm_data));
  const std::uint32_t place = news.line % wire::kMaxLines;
  Owner& owner = table_.owner(place);
  if (owner.state != Owner::kAwaited || static_cast<std::uint16_t>(owner.position) != news.line)
      [[unlikely]] {
    return -1;
  }
  Request& request = requests_[owner.request];
  std::uint32_t& size = request.sizes[owner.index];
  if (completion.byte_len > size) [[unlikely]]
    return -1;
  size = completion.byte_len;
  owner.state = Owner::kNothing;
  --request.missing;
  return static_cast<int>(place);
}

}  // namespace beeline
