// SPDX-License-Identifier: Apache-2.0
//
// The cases of isend that the fast functions leave: alarms, groups, notices, errors. No lock, no
// allocation and no system call here either, unless a fault is logged.
#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/transfer/send_chain.h"
#include "plugin/transfer/send_comm.h"

namespace beeline {

Errc SendComm::isend(const void* data, std::size_t size, int tag, const MemoryHandle& memory,
                     void** made) {
  gate_.enter();
  Errc code = Errc::kOk;
  // While the control thread has the comm, not even the limits of its paths may be read.
  if (!gate_.is_alarmed() || !gate_.is_taken()) {
    const std::uint32_t lkey = memory.lkeys.front();
    describe(alone_, path_at(0), data, size, lkey, memory);  // post() overwrites what differs
    code = isend_entered(tag, memory, made);
  }
  if (*made == nullptr) gate_.leave();
  return code;
}

// For the message that describe() has put into alone_.
Errc SendComm::isend_entered(int tag, const MemoryHandle& memory, void** made) {
  if (gate_.is_alarmed()) {
    // Whether the receiver has closed without waiting for this message: its receive was optional
    // and was done at once.
    if (link_->state() == Link::State::kGoodbye && credits_.is_in_order() &&
        wire::is_before(credits_.next(), link_->peer_settled())) {
      return skip_unneeded(made);
    }
    bool may = false;
    if (const Errc code = may_begin("isend", &may); !may) return code;
  }
  const wire::LineFacts* const line = credits_.find(tag);
  if (line != nullptr) return post(*line, memory, made);
  if (credits_.error() != nullptr) events_.on_protocol_error(*this, credits_.error());
  return Errc::kOk;
}

// The message counts as sent: its credit line may never come, and its buffer no longer exists.
Errc SendComm::skip_unneeded(void** made) {
  if (const Status status = events_.on_alarm(*this); !status) return status.error().code;
  if (free_requests_.empty() && !make_room(path_at(0), 0)) return Errc::kOk;
  Request& request = open_request(credits_.next(), alone_.sge.length, 0);
  request.missing = 0;
  cursor_.await_after(ring_, cursor_.order());
  *made = &request;
  return Errc::kOk;
}

Errc SendComm::post(const wire::LineFacts& line, const MemoryHandle& memory, void** made) {
  const std::uint32_t size = alone_.sge.length;
  const std::uint32_t kept = std::min(size, line.capacity);
  const std::uint64_t source = alone_.sge.addr;
  alone_.sge.length = kept;
  const Errc code = has_several_paths() ? post_on_some(line, memory, made)
                                        : post_on(only_path(), line, memory, made);
  if (code != Errc::kOk || *made == nullptr) return code;
  static_cast<Request*>(*made)->keep_source({.address = source, .memory = &memory});
  watch_.moved();
  stats_.add_message(line.number - 1, kept);
  credits_.take(line);
  if (kept < size) report_cut(size, line.tag, kept);
  return credits_.is_between_irecvs() || held_.full() ? post_what_is_held() : Errc::kOk;
}

Errc SendComm::post_on(Path& path, const wire::LineFacts& line, const MemoryHandle& memory,
                       void** made) {
  alone_.sge.lkey = memory.lkeys[path.rail];
  return alone_.sge.length > path.most_immediate ? post_with_notice(path, line, made)
                                                 : post_with_immediate(path, line, made);
}

// A receiver with one rail has registered everything with it.
std::optional<std::uint32_t> SendComm::rkey_for(const Path& path,
                                                std::uint32_t position) const noexcept {
  if (late_keys_ != nullptr && late_keys_->is_for(path.peer_rail, position)) [[unlikely]] {
    return late_keys_->key(path.peer_rail, position);
  }
  const std::uint32_t key = wire::rkey_in(ring_[position % wire::kMaxLines], path.peer_rail);
  return key != 0 || connection_.receiver_rails == 1 ? std::optional(key) : std::nullopt;
}

Errc SendComm::post_with_immediate(Path& path, const wire::LineFacts& line, void** made) {
  if (!has_room(path, 1) && !make_room(path, 1)) return Errc::kOk;
  Request& request = open_request(line.number - 1, alone_.sge.length, 1);
  name_line<Paths::kOne>(alone_, path, request);
  alone_.wr.wr_id = SendId{.slot = request.slot, .wrs = 1, .bytes = alone_.sge.length}.packed();
  alone_.wr.wr.rdma.remote_addr = line.address;
  alone_.wr.wr.rdma.rkey = rkey_for(path, request.line).value_or(0);
  if (line.count > 1 && alone_.sge.length != 0 && !has_several_paths()) {
    held_.next().take(alone_);
    held_.hold(request);
  } else {
    alone_.wr.num_sge = alone_.sge.length != 0 ? 1 : 0;  // a length of 0 may mean 2 GiB
    const int rc = ibv_post_send(path.qp, &alone_.wr, &refused_);
    alone_.wr.num_sge = 1;
    if (rc != 0) return withdraw(path, request, rc);
  }
  --path.send_free;
  *made = &request;
  return Errc::kOk;
}

// The receiver's buffer holds only `kept` bytes. Counted each time, logged once for each comm.
void SendComm::report_cut(std::uint32_t size, int tag, std::uint32_t kept) {
  stats_.add(Counter::kTruncations);
  if (std::exchange(is_cut_reported_, true)) return;
  stats_.record(Event::kTruncation, kept, size);
  BL_WARN(
      "%s: a send of %u bytes (tag %d) is longer than its receive and was cut to %u bytes. Later "
      "cuts are counted, not logged",
      name_for_log().c_str(), size, tag, kept);
}

// NCCL may test requests of another comm only: room must not depend on tests of this one.
bool SendComm::make_room(const Path& path, std::uint32_t wrs) {
  collect();
  return has_room(path, wrs);
}

Errc SendComm::post_with_notice(Path& path, const wire::LineFacts& line, void** made) {
  const std::uint32_t size = alone_.sge.length;
  const std::uint32_t wrs = writes_of(size, path.most_bytes) + 1;
  if (wrs > kSendDepth) return refuse_writes(path, size);
  if (!has_room(path, wrs) && !make_room(path, wrs)) return Errc::kOk;
  Request& request = open_request(line.number - 1, size, wrs);
  if (const int rc = post_data_and_notice(path, request, line); rc != 0) {
    return withdraw(path, request, rc);
  }
  *made = &request;
  return Errc::kOk;
}

// If the device refuses them, the path is taken out of use, and once it is fenced they are sent
// again by the rules for all messages that it has lost.
Errc SendComm::post_held() {
  Path& path = only_path();
  const int rc = held_.post(path.qp);
  return rc == 0 ? Errc::kOk : events_.on_refused(*this, path, rc, "post sends");
}

// The completion of a send is that of the sends that were held before it, too.
void SendComm::complete_before(Path& path, const Request& last) noexcept {
  for (Request* request = last.next; request != nullptr; request = request->next) {
    if (request->missing == 0) return;  // after the peer's goodbye: it may have another use now
    path.send_free += request->wrs;
    request->missing = 0;
  }
}

// The device has refused the request.
Errc SendComm::withdraw(Path& path, Request& request, int rc) {
  free_requests_.give_back(request);
  return events_.on_refused(*this, path, rc, "post a send");
}

Errc SendComm::withdraw_prepared(Path& path, int rc) {
  Request& request = requests_[alone_.wr.wr_id % wire::kMaxLines];
  BL_ASSERT(*made_ == &request, "the send that was refused is the one prepared");
  *made_ = nullptr;
  const Errc code = withdraw(path, request, rc);
  gate_.leave();
  return code;
}

// There will never be room for it, so NCCL must not be told to call again.
Errc SendComm::refuse_writes(const Path& path, std::uint32_t size) const {
  BL_WARN(
      "%s: a send of %u bytes is refused: it needs more than %u work requests of %u bytes, which "
      "is all that the send queue holds",
      name_for_log().c_str(), size, kSendDepth - 1, path.most_bytes);
  return Errc::kUnsupported;
}

// The notice arrives after the data, since a queue pair keeps the order.
int SendComm::post_data_and_notice(Path& path, const Request& request,
                                   const wire::LineFacts& line) {
  SendChain chain(path, request.slot);
  const std::uint32_t rkey = rkey_for(path, request.line).value_or(0);
  if (const int rc = chain.write(alone_.sge, line.address, rkey); rc != 0) return rc;
  const std::uint32_t size = alone_.sge.length;
  return chain.end_with_notice(notice_of(path, request, wire::all_chunks_of(size)),
                               notices_[request.slot]);
}

wire::Notice SendComm::notice_of(const Path& path, const Request& request,
                                 wire::ChunkMask which) const noexcept {
  const std::uint32_t size = request.sizes[0];
  return {.line = static_cast<std::uint16_t>(request.line),
          .generation = path.generation,
          .chunks = static_cast<std::uint8_t>(wire::chunk_count_of(size)),
          .size = size,
          .which = which};
}

// Not in the loop of absorb(), where a look at each completion costs two instructions.
void SendComm::absorb_answer(Path& path, const ibv_wc* completions, int found) {
  for (const ibv_wc* one = completions; one != completions + found; ++one) {
    path.is_probing = false;
    if (SendId::of(one->wr_id).slot != work_id::kProbeSlot || one->status != IBV_WC_SUCCESS) {
      absorb(path, one, 1);
      path.is_probing = path.posts;
      continue;
    }
    ++path.send_free;
    watch_.moved();
    link_->note_heard();
    return absorb(path, one + 1, static_cast<int>(completions + found - one - 1));
  }
}

void SendComm::absorb(Path& path, const ibv_wc* completions, int found) {
  if (found < 0) return events_.on_unreadable_queue(*this, path);
  if (has_several_paths()) return absorb_on(path, completions, found);
  if (path.is_probing) [[unlikely]]
    return absorb_answer(path, completions, found);
  watch_.moved();
  for (const ibv_wc* one = completions; one != completions + found; ++one) {
    if ((one->wr_id & work_id::kSeveral) != 0 && one->status == IBV_WC_SUCCESS) {
      complete_before(path, requests_[one->wr_id % wire::kMaxLines]);
    }
    if (!complete(path, *one)) [[unlikely]]
      events_.on_failed_request(*this, path, *one, "send");
  }
  stats_.add(Counter::kCompletions, static_cast<std::uint64_t>(found));
}

}  // namespace beeline
