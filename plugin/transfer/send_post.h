// SPDX-License-Identifier: Apache-2.0
//
// The usual isend: it takes the next credit line and writes the payload where the line says. In a
// header, to become part of the exported isend.
//
// It is two functions because of the call to the device between them. If it were one function, GCC
// 12 would save six registers on the stack before it looks for credit. According to bench/cost,
// that adds 21 instructions to an isend without credit, which takes 35, and 22 to each message. For
// the same reason the second function reads values from members (wr_, made_) instead of getting
// them as arguments. Messages and lines are counted only after the device has accepted the work
// request. Counting the request there, too, would add 9 instructions to each message.
#pragma once

#include <arpa/inet.h>

#include <cstdint>

#include "plugin/transfer/send_comm.h"

namespace beeline {

BL_INLINED SendComm::Begun SendComm::begin_isend(const void* data, std::size_t size, int tag,
                                                 const MemoryHandle& memory, void** made) noexcept {
  gate_.enter();
  const wire::CreditLine& line = *awaited_;
  wire::LineWords words;
  words[wire::kOrderWord] = wire::order_in(line);
  if (words[wire::kOrderWord] != awaited_order_ || gate_.is_alarmed()) [[unlikely]] {
    const bool has_come = wire::number_of(words[wire::kOrderWord] ^ awaited_order_) == 0;
    // While the control thread has the comm, not even the limits of its paths may be read.
    if (gate_.is_alarmed() ? !gate_.is_taken() : has_come) {
      prepare(only_path(), data, size, memory);
      return Begun::kUnusual;
    }
    stats_.add(Counter::kNoCredit);
    gate_.leave();
    return Begun::kNoCredit;
  }
  DataPath& path = only_path();
  prepare(path, data, size, memory);
  // Written before the line is proved: that keeps registers free, and unless the work request is
  // posted it does no harm.
  words[wire::kAddressWord] = wire::word_of(line, wire::kAddressWord);
  wr_.wr.rdma.remote_addr = wire::address_of(words);
  words[wire::kSizeAndTagWord] = wire::word_of(line, wire::kSizeAndTagWord);
  words[wire::kFirstKeysWord] = wire::word_of(line, wire::kFirstKeysWord);
  wr_.wr.rdma.rkey = wire::rkey_of(words);
  // A torn line counts as no credit.
  if (wire::word_of(line, wire::kSumWord) != wire::sum_of(words, wire::Rails::kFew)) [[unlikely]]
    return Begun::kUnusual;
  if (wire::tag_of(words) != tag) [[unlikely]]
    return Begun::kUnusual;
  // A length of 0 is unusual, too.
  if (size > wire::capacity_of(words) || size - 1 >= most_quick_) [[unlikely]]
    return Begun::kUnusual;
  if (!has_room(path, 1)) [[unlikely]]
    return Begun::kUnusual;
  const std::uint32_t position = wire::number_of(words[wire::kOrderWord]) - 1;
  Request& request = open_request(position, static_cast<std::uint32_t>(size), 1);
  name_line(path, request);
  *made = &request;
  made_ = made;
  return Begun::kPrepared;
}

BL_INLINED Errc SendComm::post_prepared() {
  DataPath& path = only_path();
  if (const int rc = ibv_post_send(path.qp, &wr_, &refused_); rc != 0) [[unlikely]]
    return withdraw_prepared(path, rc);
  --path.send_free;
  // Not in begin_isend(), which would need two more registers for it.
  static_cast<Request*>(*made_)->keep_source({.address = sge_.addr, .memory = memory_});
  watch_.moved();
  stats_.add_message(sge_.length);
  const std::uint64_t order = awaited_order_;
  awaited_ = &ring_[wire::number_of(order) % wire::kMaxLines];
  awaited_order_ = wire::order_after(order);
  // One event for each receive.
  if (wire::index_of(awaited_order_) == 0) record_last();
  return Errc::kOk;
}

BL_INLINED void SendComm::prepare(const DataPath& path, const void* data, std::size_t size,
                                  const MemoryHandle& memory) noexcept {
  sge_.addr = reinterpret_cast<std::uint64_t>(data);
  sge_.length = static_cast<std::uint32_t>(size);
  sge_.lkey = memory.lkeys.front();
  memory_ = &memory;
  wr_.send_flags = size > path.max_inline ? unsigned{IBV_SEND_SIGNALED} : memory.short_send_flags;
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
BL_INLINED void SendComm::name_line(const DataPath& path, const Request& request) noexcept {
  wr_.wr_id = request.slot;
  wr_.imm_data = htonl(wire::pack(
      {.line = static_cast<std::uint16_t>(request.line), .generation = path.generation}));
}

BL_INLINED void SendComm::absorb_one(DataPath& path, const ibv_wc& completion) {
  watch_.moved();
  if (!complete(path, completion)) [[unlikely]]
    return events_.on_failed_request(*this, path, completion, "send");
  stats_.add(Counter::kCompletions);
}

// False: it has failed.
BL_INLINED bool SendComm::complete(DataPath& path, const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]]
    return false;
  Request& request = requests_[completion.wr_id % wire::kMaxLines];
  path.send_free += request.wrs;
  request.missing = 0;
  return true;
}

}  // namespace beeline
