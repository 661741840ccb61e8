// SPDX-License-Identifier: Apache-2.0
//
// The sender beside its hot path (send_post.h): groups, messages that need a notice, completions.
// No lock, no allocation, no system call here either.
#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "plugin/transfer/send_comm.h"

namespace beeline {
namespace {

constexpr std::int64_t kMostTornNs = kNsPerSec;

}  // namespace

// What is to be sent stands in sge_ and in wr_: prepare() has written it there.
Errc SendComm::isend_otherwise(int tag, void** made) {
  if (disturbed()) {
    if (is_unneeded()) return skip_unneeded(made);
    bool may = false;
    if (const Errc code = may_begin("isend", &may); !may) return code;
  }
  if (group_.count != 0) return isend_by_tag(tag, made);
  wire::LineFacts line;
  if (!read_whole(wire::number_of(awaited_order_) - 1, line)) return without_credit();
  if (!is_next(line)) {
    break_protocol("a credit line that belongs to no receive");
    return without_credit();
  }
  await_in_order(wire::order_of(line.number, line.index, line.count, line.epoch));
  if (line.tag == tag) return post(line, made);
  if (line.count == 1) return without_credit();
  open_group(line);
  return isend_by_tag(tag, made);
}

// Whether the receiver closed without waiting for the next message: one that it said to be done
// before it arrived.
bool SendComm::is_unneeded() const noexcept {
  return link_->state() == Link::State::kGoodbye && group_.count == 0 &&
         wire::is_before(wire::number_of(awaited_order_) - 1, link_->peer_settled());
}

// It counts as sent. Its credit line may never come, and its buffer is gone.
Errc SendComm::skip_unneeded(void** made) {
  if (const Status status = examine(); !status) return status.error().code;
  if (free_requests_.empty() && !make_room(0)) return Errc::kOk;
  Request& request = open_request(wire::number_of(awaited_order_) - 1, sge_.length, 0);
  request.missing = 0;
  await_in_order(wire::order_after(awaited_order_));
  *made = &request;
  return Errc::kOk;
}

// False: it has not come, or not all of it. The rest of a line is there within microseconds of its
// number, unless it was damaged: then the wait would never end.
bool SendComm::read_whole(std::uint32_t position, wire::LineFacts& line) {
  const wire::CreditLine& in_ring = ring_[position % wire::kMaxLines];
  if (wire::read_line(in_ring, position, rails(), line)) {
    torn_since_ns_ = 0;
    return true;
  }
  if (!wire::is_there(in_ring, position)) {
    torn_since_ns_ = 0;
  } else if (torn_since_ns_ == 0) {
    torn_since_ns_ = now_ns();
  } else if (now_ns() - torn_since_ns_ > kMostTornNs) {
    break_protocol("a credit line whose check sum is wrong");
  }
  return false;
}

// The first of an irecv with however many, or the next of those that have begun.
bool SendComm::is_next(const wire::LineFacts& line) const noexcept {
  if (line.index != wire::index_of(awaited_order_)) return false;
  if (line.index != 0) return line.count == wire::count_of(awaited_order_);
  return line.count != 0 && line.count <= wire::kMaxReceives;
}

// From here on, sends overtake each other.
void SendComm::open_group(const wire::LineFacts& line) noexcept {
  group_.first = line.number - 1 - line.index;
  group_.count = line.count;
  group_.next = group_.read = line.index;
  group_.taken = 0;
  group_.epoch = line.epoch;
  await_by_tag();
}

void SendComm::await(std::uint64_t order) noexcept {
  awaited_order_ = order;
  awaited_ = &ring_[(wire::number_of(order) - 1) % wire::kMaxLines];
}

// All is as begin() expects it, unless a line has more words than that looks at.
void SendComm::await_in_order(std::uint64_t order) noexcept {
  await(rails() == wire::Rails::kFew ? order : order & ~wire::kOneNotice);
}

void SendComm::await_by_tag() noexcept {
  await(std::uint64_t{group_.first + group_.next + 1} << 32);
}

Errc SendComm::without_credit() noexcept {
  (void)no_credit();
  return Errc::kOk;
}

Errc SendComm::isend_by_tag(int tag, void** made) {
  const wire::LineFacts* const line = match(tag);
  return line != nullptr ? post(*line, made) : without_credit();
}

// The first free line of the group with that tag. Null while it, or one before it, has not come.
const wire::LineFacts* SendComm::match(int tag) {
  for (std::uint32_t i = group_.next; i < group_.count; ++i) {
    if ((group_.taken >> i & 1) != 0) continue;
    wire::LineFacts& line = group_.lines[i];
    if (i >= group_.read) {
      if (!read_line(i, line)) return nullptr;
      group_.read = static_cast<std::uint8_t>(i + 1);
    }
    if (line.tag == tag) return &line;
  }
  return nullptr;
}

// False: it has not come, or not all of it; or it makes no sense, which ends the comm.
bool SendComm::read_line(std::uint32_t index, wire::LineFacts& line) {
  const std::uint32_t position = group_.first + index;
  if (!read_whole(position, line)) return false;
  const bool in_order = line.index == index && line.count == group_.count;
  if (!in_order) break_protocol("a credit line that belongs to no receive");
  return in_order;
}

void SendComm::take(const wire::LineFacts& line, std::uint32_t size) noexcept {
  stats_.add_message(size);
  bool is_last = line.index + 1 == line.count;
  if (group_.count == 0) {
    await_in_order(wire::order_after(awaited_order_));
  } else {
    is_last = take_by_tag(line.index);
  }
  if (is_last) stats_.record(Event::kSendPosted, size, line.number - 1);
}

// True: no line of the group is left. Where none that was looked at is left, order is back.
bool SendComm::take_by_tag(std::uint8_t index) noexcept {
  group_.taken = static_cast<std::uint8_t>(group_.taken | 1U << index);
  while ((group_.taken >> group_.next & 1) != 0) ++group_.next;
  const bool is_empty = group_.next == group_.count;
  if (group_.next < group_.read && !is_empty) {
    await_by_tag();
    return false;
  }
  const auto next = is_empty ? std::uint8_t{0} : group_.next;
  await_in_order(wire::order_of(group_.first + group_.next + 1, next, group_.count, group_.epoch));
  group_.count = 0;
  return is_empty;
}

// For the line that begin() took.
void SendComm::note_last() noexcept {
  stats_.record(Event::kSendPosted, sge_.length, wire::number_of(awaited_order_) - 2);
}

Errc SendComm::post(const wire::LineFacts& line, void** made) {
  const std::uint32_t size = sge_.length;
  sge_.length = std::min(size, line.capacity);
  const Errc code = sge_.length > most_whole_ ? post_announced(line, made) : post_whole(line, made);
  if (code != Errc::kOk || *made == nullptr) return code;
  take(line, sge_.length);
  if (sge_.length < size) note_cut(size, line.tag, sge_.length);
  return Errc::kOk;
}

Errc SendComm::post_whole(const wire::LineFacts& line, void** made) {
  if (!has_room(1) && !make_room(1)) return Errc::kOk;
  Request& request = open_request(line.number - 1, sge_.length, 1);
  fill_in(request);
  wr_.wr.rdma.remote_addr = line.address;
  wr_.wr.rdma.rkey = line.rkey;
  wr_.num_sge = sge_.length != 0 ? 1 : 0;  // a length of 0 may mean 2 GiB
  const int rc = ibv_post_send(first_path().qp, &wr_, &refused_);
  wr_.num_sge = 1;
  if (rc != 0) return take_back(request, rc);
  --first_path().send_free;
  watch_.moved();
  *made = &request;
  return Errc::kOk;
}

// The receive had room for `kept` bytes only. Said once for each comm, counted always.
void SendComm::note_cut(std::uint32_t size, int tag, std::uint32_t kept) {
  stats_.add(Counter::kTruncations);
  stats_.record(Event::kTruncation, kept, size);
  if (std::exchange(cut_said_, true)) return;
  BL_WARN("%s: a send of %u bytes (tag %d) meets a receive of %u: the rest is cut off",
          name_for_people().c_str(), size, tag, kept);
}

// NCCL may have requests of another comm to test: room must not depend on it.
bool SendComm::make_room(std::uint32_t wrs) {
  collect();
  return has_room(wrs);
}

std::uint32_t SendComm::chunks_of(std::uint32_t size) const noexcept {
  return size == 0 ? 1 : (size - 1) / chunk_bytes_ + 1;
}

Errc SendComm::post_announced(const wire::LineFacts& line, void** made) {
  const std::uint32_t size = sge_.length;
  const std::uint32_t wrs = chunks_of(size) + 1;
  if (wrs > kSendDepth) return too_many_chunks(size);
  if (!has_room(wrs) && !make_room(wrs)) return Errc::kOk;
  Request& request = open_request(line.number - 1, size, wrs);
  if (const int rc = post_chunks(request, line); rc != 0) {
    return take_back(request, rc);
  }
  first_path().send_free -= wrs;
  watch_.moved();
  *made = &request;
  return Errc::kOk;
}

Errc SendComm::take_back(Request& request, int rc) {
  free_requests_.give_back(request);
  return refused_by_device(rc, "post a send").error().code;
}

// Of what begin() has counted, handed out and taken for sent.
Errc SendComm::take_back_taken(int rc) {
  Request& request = requests_[wr_.wr_id];
  stats_.add_messages(~std::uint64_t{0}, ~std::uint64_t{sge_.length} + 1);
  await(std::uint64_t{request.line + 1} << 32);
  *made_ = nullptr;
  return take_back(request, rc);
}

// "Later" would be for ever.
Errc SendComm::too_many_chunks(std::uint32_t size) const {
  BL_WARN(
      "%s: a send of %u bytes is refused: the device writes at most %u bytes at a time, and %u "
      "times before it must wait",
      name_for_people().c_str(), size, chunk_bytes_, kSendDepth - 1);
  return Errc::kUnsupported;
}

// Unsignalled writes, then a notice behind them: queue pairs keep the order of what is posted.
int SendComm::post_chunks(const Request& request, const wire::LineFacts& line) {
  PathState& path = first_path();
  const std::uint32_t size = sge_.length;
  const std::uint32_t chunks = chunks_of(size);
  for (std::uint32_t at = 0; at < size; at += std::min(chunk_bytes_, size - at)) {
    ibv_sge sge = {
        .addr = sge_.addr + at, .length = std::min(chunk_bytes_, size - at), .lkey = sge_.lkey};
    ibv_send_wr write = {};
    write.wr_id = request.slot;
    write.sg_list = &sge;
    write.num_sge = 1;
    write.opcode = IBV_WR_RDMA_WRITE;
    write.wr.rdma.remote_addr = line.address + at;
    write.wr.rdma.rkey = line.rkey;
    if (const int rc = ibv_post_send(path.qp, &write, &refused_); rc != 0) return rc;
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
  return ibv_post_send(path.qp, &send, &refused_);
}

void SendComm::absorb_one(const ibv_wc& completion) {
  watch_.moved();
  if (!complete(completion)) [[unlikely]]
    return suspect(completion, "send");
  stats_.add(Counter::kCompletions);
}

void SendComm::absorb(const ibv_wc* completions, int found) {
  if (found < 0) return fail_queue();
  watch_.moved();
  for (const ibv_wc* one = completions; one != completions + found; ++one) {
    if (!complete(*one)) [[unlikely]]
      suspect(*one, "send");
  }
  stats_.add(Counter::kCompletions, static_cast<std::uint64_t>(found));
}

// False: it has failed.
bool SendComm::complete(const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]]
    return false;
  Request& request = requests_[completion.wr_id % wire::kMaxLines];
  first_path().send_free += request.wrs;
  request.missing = 0;
  return true;
}

}  // namespace beeline
