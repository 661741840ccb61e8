// SPDX-License-Identifier: Apache-2.0
//
// The sender's hot path: match a credit line, write the payload, collect the completion. No lock,
// no allocation, no system call.
#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "plugin/base/log.h"
#include "plugin/transfer/send_comm.h"

namespace beeline {

Result<Request*> SendComm::isend(const void* data, std::size_t size, int tag,
                                 const MemoryHandle& memory) {
  if (disturbed()) [[unlikely]] {
    if (!BL_TRY(may_begin("isend"))) return nullptr;
  }
  const wire::CreditLine* const line = match(tag);
  if (line == nullptr) {
    stats_.add(Counter::kNoCredit);
    return nullptr;
  }
  const std::size_t kept = std::min<std::size_t>(size, line->capacity);
  Request* const request = BL_TRY(post(*line, data, static_cast<std::uint32_t>(kept), memory));
  if (kept < size && request != nullptr) [[unlikely]]
    note_cut(size, tag, kept);
  return request;
}

// The receive had room for `kept` bytes only. Said once for each comm, counted always.
void SendComm::note_cut(std::size_t size, int tag, std::size_t kept) {
  stats_.add(Counter::kTruncations);
  stats_.record(Event::kTruncation, static_cast<std::uint32_t>(kept), size);
  if (std::exchange(cut_said_, true)) return;
  BL_WARN("%s: a send of %zu bytes (tag %d) meets a receive of %zu: the rest is cut off",
          name_for_people().c_str(), size, tag, kept);
}

// The line that the tag takes: the first free one with that tag, in the oldest irecv that has free
// ones. Null while it, or one before it, has not come.
const wire::CreditLine* SendComm::match(int tag) {
  if (group_.count == 0 && !fetch(0)) return nullptr;
  for (std::size_t i = 0; i < group_.count; ++i) {
    if ((group_.taken >> i & 1) != 0) continue;
    if ((group_.present >> i & 1) == 0 && !fetch(i)) return nullptr;
    if (group_.lines[i].tag == tag) return &group_.lines[i];
  }
  return nullptr;
}

bool SendComm::fetch(std::size_t index) {
  const std::uint32_t position = group_.first + static_cast<std::uint32_t>(index);
  wire::CreditLine& line = group_.lines[index];
  if (!wire::take_line(ring_[position % wire::kMaxLines], position, line)) return false;
  if (line.index != index || line.count == 0 || line.count > wire::kMaxReceives ||
      (index != 0 && line.count != group_.count)) [[unlikely]] {
    break_protocol("a credit line that belongs to no receive");
    return false;
  }
  group_.count = line.count;
  group_.present = static_cast<std::uint8_t>(group_.present | 1U << index);
  return true;
}

void SendComm::take(const wire::CreditLine& line) noexcept {
  group_.taken = static_cast<std::uint8_t>(group_.taken | 1U << line.index);
  if (std::popcount(group_.taken) < group_.count) return;
  group_.first += group_.count;
  group_.count = group_.present = group_.taken = 0;
}

bool SendComm::needs_notice(std::uint32_t size) const noexcept {
  return size > chunk_bytes_ || notify_ == Notify::kNotice ||
         (notify_ == Notify::kNoticeAfterRouted && size > routed_above_);
}

std::uint32_t SendComm::chunks_of(std::uint32_t size) const noexcept {
  return size == 0 ? 1 : (size - 1) / chunk_bytes_ + 1;
}

Result<Request*> SendComm::post(const wire::CreditLine& line, const void* data, std::uint32_t size,
                                const MemoryHandle& memory) {
  PathState& path = path_states().front();
  const bool whole = !needs_notice(size);
  const std::uint32_t wrs = whole ? 1 : chunks_of(size) + 1;
  if (wrs > kSendDepth) [[unlikely]]
    return too_many_chunks(size);
  if (requests_.empty() || path.send_free < wrs) {
    poll();  // NCCL may have requests of another comm to test: room must not depend on it
    if (requests_.empty() || path.send_free < wrs) return nullptr;
  }
  Request& request = requests_.take();
  request.line = line.number - 1;
  request.count = 1;
  request.missing = 1;
  request.wrs = static_cast<std::uint16_t>(wrs);
  request.sizes[0] = size;
  const Status posted = whole ? post_whole(request, line, data, size, memory)
                              : post_chunks(request, line, data, size, memory);
  if (!posted) [[unlikely]] {
    requests_.give_back(request);
    return fail(posted.error());
  }
  path.send_free -= wrs;
  watch_.moved();
  stats_.add(Counter::kMessages);
  stats_.add(Counter::kBytes, size);
  stats_.record(Event::kSendPosted, size, request.line);
  take(line);
  return &request;
}

// "Later" would be for ever.
Failure<Error> SendComm::too_many_chunks(std::uint32_t size) const {
  BL_WARN(
      "%s: a send of %u bytes is refused: the device writes at most %u bytes at a time, and %u "
      "times before it must wait",
      name_for_people().c_str(), size, chunk_bytes_, kSendDepth - 1);
  return fail(Errc::kUnsupported, "send a message that large");
}

// The common case: one write carries all of it, and the news of its arrival.
Status SendComm::post_whole(Request& request, const wire::CreditLine& line, const void* data,
                            std::uint32_t size, const MemoryHandle& memory) {
  PathState& path = path_states().front();
  sge_ = {.addr = reinterpret_cast<std::uint64_t>(data), .length = size, .lkey = memory.lkeys[0]};
  wr_.wr_id = request.slot;
  wr_.next = nullptr;
  wr_.num_sge = size != 0 ? 1 : 0;
  wr_.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr_.send_flags = IBV_SEND_SIGNALED;
  if (memory.host && size <= path.max_inline) wr_.send_flags |= IBV_SEND_INLINE;
  wr_.imm_data =
      htonl(wire::pack({.line = static_cast<std::uint16_t>(request.line), .epoch = path.epoch}));
  wr_.wr.rdma.remote_addr = line.address;
  wr_.wr.rdma.rkey = line.rkeys[0];
  ibv_send_wr* refused = nullptr;
  const int rc = ibv_post_send(path.qp, &wr_, &refused);
  return rc == 0 ? Status() : refused_by_device(rc, "post a send");
}

// Unsignalled writes, then a notice behind them: queue pairs keep the order of what is posted.
Status SendComm::post_chunks(Request& request, const wire::CreditLine& line, const void* data,
                             std::uint32_t size, const MemoryHandle& memory) {
  PathState& path = path_states().front();
  const std::uint32_t chunks = chunks_of(size);
  ibv_send_wr* refused = nullptr;
  for (std::uint32_t at = 0; at < size; at += std::min(chunk_bytes_, size - at)) {
    ibv_sge sge = {.addr = reinterpret_cast<std::uint64_t>(data) + at,
                   .length = std::min(chunk_bytes_, size - at),
                   .lkey = memory.lkeys[0]};
    ibv_send_wr write = {};
    write.wr_id = request.slot;
    write.sg_list = &sge;
    write.num_sge = 1;
    write.opcode = IBV_WR_RDMA_WRITE;
    write.wr.rdma.remote_addr = line.address + at;
    write.wr.rdma.rkey = line.rkeys[0];
    if (const int rc = ibv_post_send(path.qp, &write, &refused); rc != 0) {
      return refused_by_device(rc, "post a part of a send");
    }
  }

  wire::Notice& notice = notices_[request.slot];
  notice = {.line = request.line,
            .size = size,
            .first = 0,
            .chunks = static_cast<std::uint16_t>(chunks),
            .all_chunks = static_cast<std::uint16_t>(chunks),
            .epoch = path.epoch,
            .reserved = 0};
  ibv_sge sge = {
      .addr = reinterpret_cast<std::uint64_t>(&notice), .length = sizeof notice, .lkey = path.lkey};
  ibv_send_wr send = {};
  send.wr_id = request.slot;
  send.sg_list = &sge;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  if (sizeof notice <= path.max_inline) send.send_flags |= IBV_SEND_INLINE;
  const int rc = ibv_post_send(path.qp, &send, &refused);
  return rc == 0 ? Status() : refused_by_device(rc, "announce a send");
}

void SendComm::poll() {
  std::array<ibv_wc, 16> completions;
  for (PathState& path : path_states()) {
    for (;;) {
      const int found = ibv_poll_cq(path.cq, completions.size(), completions.data());
      if (found < 0) [[unlikely]]
        return fail_queue();
      for (int i = 0; i < found; ++i) on_completion(completions[static_cast<std::size_t>(i)]);
      if (found < static_cast<int>(completions.size())) break;
    }
  }
}

void SendComm::on_completion(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    return suspect(completion, "send");
  }
  Request& request = requests_[completion.wr_id % wire::kMaxLines];
  path_states().front().send_free += request.wrs;
  request.missing = 0;
  watch_.moved();
  stats_.add(Counter::kCompletions);
}

}  // namespace beeline
