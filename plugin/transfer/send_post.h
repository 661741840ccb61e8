// SPDX-License-Identifier: Apache-2.0
//
// The fast isend: it takes the next credit line and writes the payload where the line says. In a
// header, to become part of the exported isend.
//
// It is two functions because of the call to the device between them. If it were one function, GCC
// 12 would save six registers on the stack before it looks for credit, which would double the cost
// of an isend without credit. For the same reason the second function reads values from members
// (alone_, made_) instead of getting them as arguments. Messages and lines are counted only after
// the device has accepted the work request. Counting the request there, too, would add 9
// instructions to each message.
#pragma once

#include <arpa/inet.h>

#include <cstdint>

#include "plugin/transfer/send_comm.h"

namespace beeline {

BL_INLINED SendComm::Begun SendComm::begin_isend(std::uint64_t awaited, const void* data,
                                                 std::size_t size, int tag,
                                                 const MemoryHandle* memory, void** made) noexcept {
  if (wire::is_grouped(awaited)) [[unlikely]]
    return Begun::kGrouped;
  made_ = made;
  const bool is_prepared =
      memory != nullptr &&
      prepare_for<Paths::kOne>(awaited, alone_, data, size, tag, *memory, made) != nullptr;
  return is_prepared ? Begun::kPrepared : Begun::kSlow;
}

BL_INLINED bool SendComm::begin_on_several(const void* data, std::size_t size, int tag,
                                           const MemoryHandle& memory, void** made) noexcept {
  const std::uint64_t order = cursor_.order() | wire::kOneNotice;
  made_ = made;
  return prepare_for<Paths::kSeveral>(order, alone_, data, size, tag, memory, made) != nullptr;
}

template <Paths kPaths>
BL_INLINED Path& SendComm::fast_path() noexcept {
  return kPaths == Paths::kOne ? only_path() : *short_path_;
}

// A path that has much to do leaves the choice to the scheduler.
BL_INLINED bool SendComm::takes_short(const Path& path, const MemoryHandle& memory) const noexcept {
  return (memory.rails >> path.rail & 1) != 0 && path.send_free > kSendDepth - kFewUnderWay &&
         several_->scheduler.outstanding(path.index) <= std::uint64_t{kFewUnderWay} * kShortBytes;
}

// For the line with this order word. With several paths, the comm has entered the gate.
template <Paths kPaths>
BL_INLINED Request* SendComm::prepare_for(std::uint64_t awaited, PreparedSend& send,
                                          const void* data, std::size_t size, int tag,
                                          const MemoryHandle& memory, void** made) noexcept {
  constexpr bool kIsOne = kPaths == Paths::kOne;
  const wire::CreditLine& line = cursor_.line();
  if (kIsOne) {
    // Until now the control thread may have had the comm.
    gate_.enter();
    if (gate_.is_alarmed() || awaited != cursor_.order()) [[unlikely]]
      return leave_unprepared();
  } else if (awaited != wire::order_in(line)) {
    return leave_unprepared();
  }
  // With several paths, there may be none for short messages now.
  if (!kIsOne && size - 1 >= most_fast_) [[unlikely]]
    return leave_unprepared();
  Path& path = fast_path<kPaths>();
  if (!kIsOne && !takes_short(path, memory)) [[unlikely]]
    return leave_unprepared();
  describe(send, path, data, size, kIsOne ? memory.lkeys.front() : memory.lkeys[path.rail], memory);
  if (&send != &alone_) send.wr.send_flags &= ~unsigned{IBV_SEND_SIGNALED};
  // Written before the line is proved: that keeps registers free, and unless the work request is
  // posted it does no harm.
  wire::LineWords words;
  words[wire::kOrderWord] = awaited;
  const std::uint64_t sum = wire::read_and_sum(line, kIsOne ? wire::Rails::kFew : rails(), words);
  send.wr.wr.rdma.remote_addr = wire::address_of(words);
  // A torn line counts as no credit.
  if (wire::word_of(line, wire::kSumWord) != sum) [[unlikely]]
    return leave_unprepared();
  const std::uint32_t rkey = kIsOne ? wire::rkey_of(words) : wire::rkey_in(line, path.peer_rail);
  send.wr.wr.rdma.rkey = rkey;
  if (!kIsOne && rkey == 0 && connection_.receiver_rails != 1) [[unlikely]]
    return leave_unprepared();
  if (wire::tag_of(words) != tag) [[unlikely]]
    return leave_unprepared();
  // A length of 0 is slow, too.
  if (size > wire::capacity_of(words) || (kIsOne && size - 1 >= most_fast_)) [[unlikely]]
    return leave_unprepared();
  if (free_requests_.empty() || (kIsOne && path.send_free == 0)) [[unlikely]]
    return leave_unprepared();
  const std::uint32_t position = wire::number_of(awaited) - 1;
  Request& request = open_request(position, static_cast<std::uint32_t>(size), 1);
  if (!kIsOne) request.path = path.index;
  name_line<kPaths>(send, path, request);
  request.keep_source({.address = reinterpret_cast<std::uint64_t>(data), .memory = &memory});
  *made = &request;
  return &request;
}

template <Paths kPaths>
BL_INLINED Errc SendComm::post_prepared() {
  Path& path = fast_path<kPaths>();
  if (const int rc = ibv_post_send(path.qp, &alone_.wr, &refused_); rc != 0) [[unlikely]]
    return withdraw_prepared(path, rc);
  const std::uint32_t size = alone_.sge.length;
  if (kPaths == Paths::kSeveral) {
    shared::add(path.bytes, size);
    if (--short_left_ == 0) most_fast_ = 0;
  }
  posted(path, size);
  return Errc::kOk;
}

BL_INLINED SendComm::Begun SendComm::hold_grouped(const void* data, std::size_t size, int tag,
                                                  const MemoryHandle* memory,
                                                  void** made) noexcept {
  PreparedSend& send = held_.next();
  if (memory == nullptr) [[unlikely]]
    return Begun::kSlow;
  Request* const request =
      prepare_for<Paths::kOne>(cursor_.order(), send, data, size, tag, *memory, made);
  if (request == nullptr) [[unlikely]]
    return Begun::kSlow;
  held_.hold(*request);
  posted(only_path(), static_cast<std::uint32_t>(size));
  const bool is_last = wire::index_of(cursor_.order()) == 0;
  return is_last || held_.full() ? Begun::kGroup : Begun::kHeld;
}

BL_INLINED void SendComm::posted(Path& path, std::uint32_t size) noexcept {
  --path.send_free;
  watch_.moved();
  const std::uint64_t order = cursor_.order();
  stats_.add_message(wire::number_of(order) - 1, size);
  cursor_.await_after(ring_, order);
}

BL_INLINED void SendComm::describe(PreparedSend& send, const Path& path, const void* data,
                                   std::size_t size, std::uint32_t lkey,
                                   const MemoryHandle& memory) noexcept {
  send.sge.addr = reinterpret_cast<std::uint64_t>(data);
  send.sge.length = static_cast<std::uint32_t>(size);
  send.sge.lkey = lkey;
  send.wr.send_flags = flags_of(path, size, memory);
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

// The immediate tells the receiver which line is complete.
template <Paths kPaths>
BL_INLINED void SendComm::name_line(PreparedSend& send, const Path& path,
                                    const Request& request) noexcept {
  // With several paths, a completion counts the work requests that it is for.
  send.wr.wr_id = SendId{.slot = request.slot, .wrs = kPaths == Paths::kOne ? 0U : 1U}.packed();
  send.wr.imm_data = htonl(wire::pack(
      {.line = static_cast<std::uint16_t>(request.line), .generation = path.generation}));
}

// False: it is left to absorb().
BL_INLINED bool SendComm::absorb_one(const ibv_wc& completion) noexcept {
  if ((completion.wr_id & work_id::kSeveral) != 0 || !complete(only_path(), completion))
      [[unlikely]] {
    return false;
  }
  watch_.moved();
  stats_.add(Counter::kCompletions);
  return true;
}

// False: it has failed.
BL_INLINED bool SendComm::complete(Path& path, const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]]
    return false;
  Request& request = requests_[completion.wr_id % wire::kMaxLines];
  path.send_free += request.wrs;
  request.missing = 0;
  return true;
}

}  // namespace beeline
