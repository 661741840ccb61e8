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
  return prepare_for(awaited, alone_, data, size, tag, memory, made) != nullptr ? Begun::kPrepared
                                                                                : Begun::kSlow;
}

// For the line with this order word, which has come.
BL_INLINED Request* SendComm::prepare_for(std::uint64_t awaited, PreparedSend& send,
                                          const void* data, std::size_t size, int tag,
                                          const MemoryHandle* memory, void** made) noexcept {
  if (memory == nullptr) [[unlikely]]
    return nullptr;
  gate_.enter();
  // Until then, the control thread may have had the comm.
  if (gate_.is_alarmed() || awaited != cursor_.order()) [[unlikely]]
    return leave_unprepared();
  const wire::CreditLine& line = cursor_.line();
  wire::LineWords words;
  words[wire::kOrderWord] = awaited;
  Path& path = only_path();
  describe(send, path, data, size, *memory);
  if (&send != &alone_) send.wr.send_flags &= ~unsigned{IBV_SEND_SIGNALED};
  // Written before the line is proved: that keeps registers free, and unless the work request is
  // posted it does no harm.
  words[wire::kAddressWord] = wire::word_of(line, wire::kAddressWord);
  send.wr.wr.rdma.remote_addr = wire::address_of(words);
  words[wire::kSizeAndTagWord] = wire::word_of(line, wire::kSizeAndTagWord);
  words[wire::kFirstKeysWord] = wire::word_of(line, wire::kFirstKeysWord);
  send.wr.wr.rdma.rkey = wire::rkey_of(words);
  // A torn line counts as no credit.
  if (wire::word_of(line, wire::kSumWord) != wire::sum_of(words, wire::Rails::kFew)) [[unlikely]]
    return leave_unprepared();
  if (wire::tag_of(words) != tag) [[unlikely]]
    return leave_unprepared();
  // A length of 0 is slow, too.
  if (size > wire::capacity_of(words) || size - 1 >= most_fast_) [[unlikely]]
    return leave_unprepared();
  if (!has_room(path, 1)) [[unlikely]]
    return leave_unprepared();
  const std::uint32_t position = wire::number_of(words[wire::kOrderWord]) - 1;
  Request& request = open_request(position, static_cast<std::uint32_t>(size), 1);
  name_line(send, path, request);
  request.keep_source({.address = reinterpret_cast<std::uint64_t>(data), .memory = memory});
  *made = &request;
  return &request;
}

BL_INLINED Errc SendComm::post_prepared() {
  Path& path = only_path();
  if (const int rc = ibv_post_send(path.qp, &alone_.wr, &refused_); rc != 0) [[unlikely]]
    return withdraw_prepared(path, rc);
  posted(path, alone_.sge.length);
  return Errc::kOk;
}

BL_INLINED SendComm::Begun SendComm::hold_grouped(const void* data, std::size_t size, int tag,
                                                  const MemoryHandle* memory,
                                                  void** made) noexcept {
  PreparedSend& send = held_.next();
  Request* const request = prepare_for(cursor_.order(), send, data, size, tag, memory, made);
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
                                   std::size_t size, const MemoryHandle& memory) noexcept {
  send.sge.addr = reinterpret_cast<std::uint64_t>(data);
  send.sge.length = static_cast<std::uint32_t>(size);
  send.sge.lkey = memory.lkeys.front();
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
BL_INLINED void SendComm::name_line(PreparedSend& send, const Path& path,
                                    const Request& request) noexcept {
  send.wr.wr_id = SendId{.slot = request.slot}.packed();
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
