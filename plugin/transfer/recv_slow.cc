// SPDX-License-Identifier: Apache-2.0
//
// Posting of receives, rarer cases of granting, and completions other than single immediates. No
// lock, no allocation and no system call.
#include <arpa/inet.h>

#include <array>
#include <cstdio>
#include <utility>

#include "plugin/transfer/recv_comm.h"

namespace beeline {

bool RecvComm::make_room() {
  collect();
  return has_room();
}

// The line after those that were written is still in use, or its buffer is invalid. Nothing was
// granted yet.
Errc RecvComm::withdraw_lines(std::uint32_t written) {
  for (std::uint32_t i = 0; i < written; ++i)
    table_.owner((next_ + i) % wire::kMaxLines).state = Owner::kNothing;
  if (!table_.owner((next_ + written) % wire::kMaxLines).waits()) return Errc::kInvalid;
  collect();
  return Errc::kOk;
}

Errc RecvComm::post_receives_for(std::uint32_t lines) {
  while (!has_several_paths() && spare_receives_ < lines) {
    if (const Errc code = post_receives(only_path()); code != Errc::kOk) return code;
    if (only_path().posts) spare_receives_ += ReceivePool::kBatch;
  }
  return has_several_paths() ? post_receives_on_all() : Errc::kOk;
}

Errc RecvComm::post_receives(Path& path) {
  const int rc = receives_.post(path);
  return rc == 0 ? Errc::kOk : events_.on_refused(*this, path, rc, "post receives");
}

Errc RecvComm::grant_around_end(std::uint32_t first, std::uint32_t count, std::uint32_t head) {
  const Errc code = post_grant(first, head);
  return code == Errc::kOk ? post_grant(first + head, count - head) : code;
}

// If the device refuses it, the path is taken out of use. The line counts as granted, and is
// written again, like all lines that the path has lost, once the path is fenced.
Errc RecvComm::on_refused_grant(int rc) {
  const Errc code = events_.on_refused(*this, grants_.path(), rc, "grant receives");
  if (code == Errc::kOk) return code;
  *made_ = nullptr;
  return leave_with(code);
}

// A receiver may wait for long with good reason, and most of its grants complete in silence: only a
// signaled write of its own shows whether they arrive. Before READY the peer may still be setting
// up its queue pair, so that nothing would answer.
Status RecvComm::probe_paths() {
  for (Path& path : paths()) {
    if (!path.grants || path.is_probing || path.send_free == 0) continue;
    BL_TRY(post_probe(path, work_id::kGrantProbe));
    path.is_probing = path.grants;
  }
  return {};
}

std::optional<AwaitedLine> RecvComm::awaited_line() noexcept {
  const std::uint32_t position = table_.settled(next_);
  if (position == next_) return {};
  return AwaitedLine{.position = position, .path = table_.owner(position % wire::kMaxLines).path};
}

void RecvComm::absorb(Path& path, const ibv_wc* completions, int found) {
  if (found < 0) return events_.on_unreadable_queue(*this, path);
  if (!has_several_paths()) return absorb_on<Paths::kOne>(path, completions, found);
  if (!path.counts) [[unlikely]]
    return absorb_reads(path, completions, found);
  absorb_on<Paths::kSeveral>(path, completions, found);
}

template <Paths kPaths>
BL_INLINED void RecvComm::absorb_on(Path& path, const ibv_wc* completions, int found) {
  constexpr bool kIsOne = kPaths == Paths::kOne;
  watch_.moved();
  std::uint64_t bytes = 0;
  auto messages = static_cast<std::uint32_t>(found);
  std::uint32_t others = 0;  // completions of receives, not counted in `messages`
  for (const ibv_wc* one = completions; one != completions + found; ++one) {
    const std::uint32_t size = one->byte_len;
    const int place = on_immediate(*one);
    if (place < 0) [[unlikely]] {
      if (!kIsOne && one->status == IBV_WC_SUCCESS && (one->opcode & IBV_WC_RECV) != 0) ++others;
      on_other(path, *one);
      --messages;
      continue;
    }
    bytes += size;
    stats_.set_size(static_cast<std::uint32_t>(place), size);
    if (!kIsOne) table_.note_only_carrier(static_cast<std::uint32_t>(place), path.rail);
  }
  stats_.add_messages(messages, bytes);
  if (!kIsOne) {
    ++path.heard;
    shared::add(path.bytes, bytes);
    path.posted_receives -= messages + others;
    // Grants go by the path that brings data.
    if (messages + others != 0 && path.grants && &grants_.path() != &path) grants_.use(path);
  }
  if (!gate_.has_more_after_poll()) [[likely]]
    return;
  if (gate_.must_recount()) (void)post_receives_on_all();
  if (flushes_in_test()) flush_.start_arrived(next_);
}

void RecvComm::on_other(Path& path, const ibv_wc& completion) {
  if (work_id::is_read(completion.wr_id)) {
    watch_.moved();
    return flush_.on_completion(path, completion);
  }
  if (completion.status != IBV_WC_SUCCESS) {
    if (!path.posts) return on_flushed(path, completion);
    const char* const doing = completion.wr_id >= work_id::kGrant ? "grant" : "receive";
    return events_.on_failed_request(*this, path, completion, doing);
  }
  // Not a switch: no other opcode can come.
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    if (const int place = on_optional(completion); place >= 0) {
      return count_optional(path, static_cast<std::uint32_t>(place), completion.byte_len);
    }
    if (ignores(wire::unpack(ntohl(completion.imm_data)).line)) return;
    return events_.on_protocol_error(*this, "the arrival of a message that no receive waits for");
  }
  if (completion.opcode == IBV_WC_RECV) return on_notice(path, completion);
  if (completion.opcode == IBV_WC_RDMA_WRITE) return on_write(path, completion);
  (void)events_.on_fault(*this, Errc::kInternal, "go on",
                         "a completion came of a work request that was never posted");
}

void RecvComm::on_write(Path& path, const ibv_wc& completion) noexcept {
  path.send_free += completion.wr_id == work_id::kGrant ? GrantWriter::kSignalEvery : 1;
  if (completion.wr_id == work_id::kGrantProbe) {
    path.is_probing = false;
    link_->note_heard();
  }
  if (completion.wr_id == work_id::kGrantInBand) path.repair->writes_in_band = false;
}

void RecvComm::count_optional(Path& path, std::uint32_t place, std::uint32_t size) noexcept {
  stats_.add_message(place, size);
  if (!table_.has_records()) return;
  table_.note_only_carrier(place, path.rail);
  shared::add(path.bytes, size);
}

// As on_immediate(), for a receive that is done already.
int RecvComm::on_optional(const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS || completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
    return -1;
  }
  const std::uint16_t line = wire::unpack(ntohl(completion.imm_data)).line;
  const std::uint32_t place = line % wire::kMaxLines;
  Owner& owner = table_.owner(place);
  if (owner.state != Owner::kOptional || static_cast<std::uint16_t>(owner.position) != line ||
      completion.byte_len > lines_[place].capacity) {
    return -1;
  }
  owner.state = Owner::kNothing;
  return static_cast<int>(place);
}

// iflush has no way to answer "call again".
Errc RecvComm::iflush(std::span<const FlushTarget> targets, void** request) {
  if (targets.empty()) return Errc::kOk;
  gate_.enter();
  if (gate_.is_alarmed()) {
    gate_.wait_until_returned();
    if (const Status status = events_.on_alarm(*this); !status) {
      return leave_with(status.error().code);
    }
  }
  if (!flush_.is_prepared()) return leave_with(Errc::kInvalid);  // the memory is another comm's
  if (free_flushes_.empty()) set_flushes_apart();
  if (free_flushes_.empty()) {
    return leave_with(events_.on_fault(*this, Errc::kInternal, "flush GPU memory",
                                       "too many requests are under way"));
  }
  Request& made = free_flushes_.take();
  made.count = 1;
  made.sizes[0] = 0;
  Errc code = Errc::kOk;
  if (!flush_.begin(made, targets, next_, &code)) {
    free_flushes_.give_back(made);
    return leave_with(code);
  }
  *request = &made;
  return Errc::kOk;
}

// Moves the free requests that belong to flushes to a list of their own.
void RecvComm::set_flushes_apart() noexcept {
  FreeRequests rest;
  while (!free_requests_.empty()) {
    Request& free = free_requests_.take();
    (free.slot >= kFirstForFlushes ? free_flushes_ : rest).give_back(free);
  }
  free_requests_ = rest;
}

void RecvComm::flush_before_done(void* request, std::span<const FlushTarget> targets) {
  if (!targets.empty()) flush_.begin_later(*static_cast<Request*>(request), targets);
}

void RecvComm::arrived(std::uint32_t place, std::uint32_t size) noexcept {
  Owner& owner = table_.owner(place);
  stats_.add_message(place, size);
  if (std::exchange(owner.state, Owner::kNothing) == Owner::kOptional) return;
  Request& request = requests_[owner.request];
  request.sizes[owner.index] = size;
  --request.missing;
}

// With what the two ends hold, since only that says whose fault it is.
void RecvComm::on_wrong_notice(const Path& path, const wire::Notice& notice, std::uint32_t bytes) {
  const std::uint32_t place = notice.line % wire::kMaxLines;
  const Owner& owner = table_.owner(place);
  std::array<char, 320> text;
  (void)std::snprintf(
      text.data(), text.size(),
      "a notice of a message that no receive waits for: %u bytes on path %u: line %u, generation "
      "%u, "
      "%u bytes, parts %llx of %u; the receive has line %u, %u bytes, generation %u, %s, %u lines "
      "granted",
      bytes, path.index + 1U, notice.line, notice.generation, notice.size,
      static_cast<unsigned long long>(notice.which), notice.chunks, owner.position & 0xffffU,
      lines_[place].capacity, path.generation, owner.waits() ? "waits" : "does not wait", next_);
  events_.on_protocol_error(*this, text.data());
}

void RecvComm::on_notice(Path& path, const ibv_wc& completion) {
  const wire::Notice& notice = path.notices[completion.wr_id % receives_.depth()];
  const std::uint32_t place = notice.line % wire::kMaxLines;
  const Owner& owner = table_.owner(place);
  const bool is_awaited = completion.byte_len == sizeof notice && owner.waits() &&
                          static_cast<std::uint16_t>(owner.position) == notice.line &&
                          notice.generation == path.generation &&
                          notice.size <= lines_[place].capacity;
  if (!is_awaited && ignores(notice.line)) return;
  if (!is_awaited || !wire::is_consistent(notice)) [[unlikely]] {
    return on_wrong_notice(path, notice, completion.byte_len);
  }
  const wire::ChunkMask all = wire::all_chunks_of(notice.size);
  if (!table_.has_records()) {
    if (notice.which != all) {
      return events_.on_protocol_error(*this, "a notice of a part of a message that is not split");
    }
  } else {
    wire::ChunkMask& here = table_.chunks(place);
    if ((here & notice.which) != 0) {
      return events_.on_protocol_error(*this, "a notice of data that has arrived before");
    }
    table_.note_carrier(place, path.rail);
    shared::add(path.bytes, wire::bytes_of(notice.which, notice.size));
    here |= notice.which;
    if (here != all) return;
    here = 0;
  }
  arrived(place, notice.size);
}

}  // namespace beeline
