// SPDX-License-Identifier: Apache-2.0
//
// Sending over several paths. The scheduler divides a long message. A path takes only as much as it
// will move soon; the rest is assigned when completions come. The last work request of a path for a
// message is its notice. A message that is not divided takes the path that the scheduler chooses;
// but most short ones take the path of the one before, because choosing would cost more than it
// could gain.
#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "common/base/clock.h"
#include "plugin/transfer/send_chain.h"
#include "plugin/transfer/send_comm.h"

namespace beeline {
namespace {

// Places in each send queue that only notices take: each split message may still need one.
constexpr std::uint32_t kForNotices = SplitMessages::kMost;
// The scheduler chooses the path of every 64th short message and measures how long it takes, so
// that short messages do not stay on a path that has become slow.
constexpr std::uint32_t kChooseEvery = 64;

// Paths between the same two ports form a group, unless split_on_qps.
class Guesses {
 public:
  Guesses(std::span<const Path> paths, bool split_on_qps) noexcept {
    for (const Path& path : paths) {
      const auto first = std::ranges::find_if(paths, [&](const Path& other) {
        return other.rail == path.rail && other.peer_rail == path.peer_rail;
      });
      const auto group = split_on_qps ? count_ : static_cast<std::size_t>(first - paths.begin());
      all_[count_++] = {.speed_mbps = path.resources->speed_mbps,
                        .group = static_cast<std::uint8_t>(group)};
    }
  }
  std::span<const PathGuess> all() const noexcept { return {all_.data(), count_}; }

 private:
  std::array<PathGuess, Scheduler::kMaxPaths> all_;
  std::size_t count_ = 0;
};

// The most work requests for any part of a message of this size: its writes, one more in case a run
// of chunks begins within one, and the notice.
std::uint32_t most_wrs(const Path& path, std::uint32_t size) noexcept {
  return writes_of(size, path.most_bytes) + 2;
}

// A path that announces more chunks of a message, because another path has lost them, writes to the
// same place again. The device must have read it.
bool may_announce(const Path& path, const SplitMessage& message) noexcept {
  const bool has_announced = (message.carried[path.index] & message.announced) != 0;
  return !has_announced || message.under_way[path.index] == 0 ||
         path.max_inline >= sizeof(wire::Notice);
}

// The lowest `count` chunks of those.
wire::ChunkMask lowest(wire::ChunkMask chunks, std::uint32_t count) noexcept {
  wire::ChunkMask rest = chunks;
  for (std::uint32_t i = 0; i < count; ++i) rest &= rest - 1;
  return chunks & ~rest;
}

}  // namespace

SendComm::SeveralPaths::SeveralPaths(std::span<const Path> paths, bool split_on_qps) noexcept
    : scheduler(Guesses(paths, split_on_qps).all()) {}

template <class Is>
PathMask SendComm::paths_that(Is&& is) noexcept {
  PathMask mask = 0;
  for (const Path& path : paths()) {
    if (path.posts && is(path)) mask = static_cast<PathMask>(mask | 1U << path.index);
  }
  return mask;
}

// The paths whose NICs, at both ends, can reach the memory of both buffers, even if they are down.
PathMask SendComm::usable_paths(std::uint32_t position, const MemoryHandle& memory) noexcept {
  PathMask usable = 0;
  for (const Path& path : paths()) {
    const bool has_keys = (memory.rails >> path.rail & 1) != 0 && rkey_for(path, position);
    if (!has_keys || path.is_device_left) continue;
    usable = static_cast<PathMask>(usable | 1U << path.index);
  }
  return usable;
}

// The path may have another device now, and so may or may not carry messages that wait, and data
// with an immediate.
void SendComm::on_joined(Path& path) {
  path.most_immediate = most_immediate(path);
  const auto bit = static_cast<PathMask>(1U << path.index);
  for (Request& request : requests_) {
    if (request.count == 0 || request.missing == 0 || request.split == 0) continue;
    SplitMessage& message = several_->splits.of(request);
    if (most_wrs(path, message.size()) + kForNotices > kSendDepth) continue;
    const PathMask usable = usable_paths(request.line, *message.memory) & bit;
    message.usable = static_cast<PathMask>((message.usable & ~bit) | usable);
  }
  check_stranded();
  assign_waiting();
}

Errc SendComm::post_on_some(const wire::LineFacts& line, const MemoryHandle& memory, void** made) {
  if (late_keys_ != nullptr) late_keys_->forget_before(line.number - 1);
  const PathMask usable = usable_paths(line.number - 1, memory);
  if (usable == 0) {
    if (!has_usable_path()) return Errc::kOk;  // NCCL calls again until one is back
    return events_.on_fault(*this, Errc::kUnsupported, "send",
                            "no pair of rails has registered both buffers of a message");
  }
  const PathMask up = usable & paths_that([](const Path&) { return true; });
  if (up == 0) return Errc::kOk;  // NCCL calls again until one is back
  // An empty send queue must be able to take any part of the message.
  const PathMask able = up & paths_that([&](const Path& path) {
                          return most_wrs(path, alone_.sge.length) + kForNotices <= kSendDepth;
                        });
  if (able == 0)
    return refuse_writes(path_at(static_cast<std::size_t>(std::countr_zero(usable))),
                         alone_.sge.length);
  const bool is_long = alone_.sge.length >= Scheduler::kLeastSplitBytes;
  if (is_long && std::popcount(able) > 1) return post_split(line, memory, able, made);
  Path& path = path_at(several_->scheduler.choose(able, alone_.sge.length, now_ns()));
  if (alone_.sge.length <= kShortBytes) send_short_by(path);
  alone_.wr.send_flags = flags_of(path, alone_.sge.length, memory);
  const std::uint32_t wrs = most_wrs(path, alone_.sge.length) + kForNotices;
  if (path.send_free < wrs && !make_room(path, wrs)) return Errc::kOk;
  const Errc code = post_on(path, line, memory, made);
  if (*made == nullptr) return code;
  several_->scheduler.posted(path.index, alone_.sge.length, now_ns());
  static_cast<Request*>(*made)->path = path.index;
  return code;
}

// Those whose notice is a write of its own are left to isend(), and so are all while a rail of the
// receiver has keys that are not in the lines.
void SendComm::send_short_by(Path& path) noexcept {
  short_path_ = &path;
  short_left_ = kChooseEvery - 1;
  const std::int64_t most = std::min<std::int64_t>(path.most_immediate, kShortBytes);
  most_fast_ = late_keys_ == nullptr && most > 0 ? static_cast<std::uint64_t>(most) : 0;
}

Errc SendComm::post_split(const wire::LineFacts& line, const MemoryHandle& memory, PathMask usable,
                          void** made) {
  if (free_requests_.empty()) collect();
  if (free_requests_.empty()) return Errc::kOk;
  Request& request = open_request(line.number - 1, alone_.sge.length, 0);
  SplitMessage* const message = several_->splits.add(request, alone_.sge.addr, memory, usable);
  if (message == nullptr) {  // too many are under way: NCCL calls again
    free_requests_.give_back(request);
    return Errc::kOk;
  }
  *made = &request;
  assign_waiting();
  return Errc::kOk;
}

// Gives chunks that wait to the paths that take them.
void SendComm::assign_waiting() {
  if (several_->has_lost_messages) resend_messages();
  if (!several_->splits.is_waiting()) return;
  const std::int64_t now = now_ns();
  several_->splits.each_waiting([&](SplitMessage& message) {
    while (message.unsent != 0) {
      if (!assign_some(message, now)) break;
    }
  });
}

// False: no path takes more, or one has refused its part.
bool SendComm::assign_some(SplitMessage& message, std::int64_t now_ns) {
  const auto left = static_cast<std::uint32_t>(std::popcount(message.unsent));
  const PathMask open = message.usable & paths_that([&](const Path& path) {
                          return path.send_free >= most_wrs(path, message.size()) + kForNotices &&
                                 may_announce(path, message);
                        });
  if (open == 0) return false;
  Scheduler::Shares shares;
  const unsigned count =
      several_->scheduler.split(open, left, wire::chunk_bytes_of(message.size()), now_ns, shares);
  const std::span<const PathShare> given(shares.data(), count);
  std::uint32_t assigned = 0;
  for (const PathShare& share : given) assigned += share.chunks;
  const bool is_last = assigned == left;
  PathMask notified = 0;
  for (const PathShare& share : given) {
    const wire::ChunkMask chunks = lowest(message.unsent, share.chunks);
    message.unsent &= ~chunks;
    if (!post_chunks(path_at(share.path), message, chunks, is_last, now_ns)) return false;
    notified = static_cast<PathMask>(notified | 1U << share.path);
  }
  if (!is_last) return assigned != 0;
  --message.request->missing;  // which counted the chunks that waited
  return post_late_notices(message, notified, now_ns);
}

// On the paths that have carried earlier chunks and none of the last. If such a path is out of use,
// nothing announces its chunks, although their writes may have completed: they count as under way
// until the receiver has reported.
bool SendComm::post_late_notices(SplitMessage& message, PathMask notified, std::int64_t now_ns) {
  for (Path& path : paths()) {
    const bool is_due = (message.carried[path.index] & ~message.announced) != 0 &&
                        (notified >> path.index & 1) == 0;
    if (!is_due) continue;
    if (!path.posts) {
      ++message.request->missing;
      ++message.under_way[path.index];
    } else if (!post_chunks(path, message, 0, true, now_ns)) {
      return false;
    }
  }
  return true;
}

// `is_last`: no more chunks of the message will come, so the notice follows.
bool SendComm::post_chunks(Path& path, SplitMessage& message, wire::ChunkMask chunks, bool is_last,
                           std::int64_t now_ns) {
  Request& request = *message.request;
  message.carried[path.index] |= chunks;
  SendChain chain(path, request.slot);
  int rc = write_chunks(chain, path, message, chunks);
  if (rc == 0 && is_last) {
    const wire::ChunkMask which = message.carried[path.index] & ~message.announced;
    message.announced |= which;
    const wire::Notice notice = notice_of(path, request, which);
    rc = chain.end_with_notice(notice, notice_place(request, path));
  } else if (rc == 0) {
    rc = chain.end_with_write();
  }
  // If the path is given up, its part counts as under way until the receiver has reported.
  if (rc != 0 && events_.on_refused(*this, path, rc, "post a send") != Errc::kOk) return false;
  ++request.missing;
  ++message.under_way[path.index];
  several_->scheduler.posted(path.index, wire::bytes_of(chunks, message.size()), now_ns);
  watch_.moved();
  return true;
}

// A comm that was made with one path has a place for each request only.
wire::Notice& SendComm::notice_place(const Request& request, const Path& path) noexcept {
  if (connection_.planned_paths == 1) return notices_[request.slot];
  return notices_[wire::kMaxLines + (request.split - 1U) * wire::kMaxRails + path.index];
}

// One write for each run of chunks that follow each other.
int SendComm::write_chunks(SendChain& chain, const Path& path, const SplitMessage& message,
                           wire::ChunkMask chunks) const noexcept {
  const wire::CreditLine& line = ring_[message.request->line % wire::kMaxLines];
  const std::uint64_t target = wire::word_of(line, wire::kAddressWord);
  const std::uint32_t rkey = rkey_for(path, message.request->line).value_or(0);
  const std::uint32_t chunk = wire::chunk_bytes_of(message.size());
  for (wire::ChunkMask rest = chunks; rest != 0;) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(rest));
    const auto count = static_cast<std::uint32_t>(std::countr_one(rest >> first));
    const wire::ChunkMask run = wire::first_chunks(count) << first;
    const std::uint64_t at = std::uint64_t{first} * chunk;
    const int rc = chain.write({.addr = message.source + at,
                                .length = wire::bytes_of(run, message.size()),
                                .lkey = message.memory->lkeys[path.rail]},
                               target + at, rkey);
    if (rc != 0) return rc;
    rest &= ~run;
  }
  return 0;
}

Status SendComm::probe_paths() {
  for (Path& path : paths()) {
    if (!path.posts || path.send_free != kSendDepth) continue;
    BL_TRY(post_probe(path, SendId{.slot = work_id::kProbeSlot, .wrs = 1}.packed()));
    path.is_probing = path.posts;
  }
  return {};
}

std::optional<std::uint32_t> SendComm::line_of(std::uint64_t wr_id) noexcept {
  if (!work_id::is_slot(wr_id)) return {};
  return requests_[wr_id % wire::kMaxLines].line;
}

std::int64_t SendComm::expected_ns(const Path& path) const noexcept {
  return several_->scheduler.expected_ns(path.index);
}

double SendComm::rate_of_path(std::size_t index) const noexcept {
  if (!has_several_paths()) return 0;
  return several_->scheduler.rate(static_cast<std::uint8_t>(index), now_ns());
}

void SendComm::poll_paths(const Request& /*request*/) {
  for (Path& path : paths()) {
    if (path.send_free != kSendDepth) drain(*this, path);
  }
  if (several_->has_lost_messages || several_->splits.is_waiting()) assign_waiting();
}

void SendComm::absorb_on(Path& path, const ibv_wc* completions, int found) {
  if (!path.counts) [[unlikely]]
    return;
  watch_.moved();
  ++path.heard;
  std::int64_t now = 0;  // not known yet: most short messages are not measured
  for (const ibv_wc* one = completions; one != completions + found; ++one) {
    if (one->status != IBV_WC_SUCCESS) [[unlikely]] {
      if (path.posts) {
        events_.on_failed_request(*this, path, *one, "send");
      } else {
        on_flushed(path, *one);
      }
    } else if (work_id::is_one_short(one->wr_id)) [[likely]] {
      ++path.send_free;
      count_sent(path, requests_[one->wr_id % wire::kMaxLines]);
    } else {
      const SendId id = SendId::of(one->wr_id);
      path.send_free += id.wrs;
      if (id.bytes != 0) {
        if (now == 0) now = now_ns();
        shared::add(path.bytes, id.bytes);
        several_->scheduler.completed(path.index, id.bytes, now);
      }
      if (work_id::is_slot(one->wr_id) && (id.slot & work_id::kSeveral) == 0) {
        count_sent(path, requests_[id.slot]);
      } else {
        count_other(path, id);
      }
    }
  }
  stats_.add(Counter::kCompletions, static_cast<std::uint64_t>(found));
}

BL_INLINED void SendComm::count_sent(const Path& path, Request& request) noexcept {
  if (request.missing == 0) return;  // after the peer's goodbye
  --request.missing;
  if (request.split == 0) [[likely]]
    return;
  --several_->splits.of(request).under_way[path.index];
  if (request.missing == 0) several_->splits.forget(request);
}

// A completion that does not belong to one request: of a probe, of a message about a path, or of
// several sends together.
void SendComm::count_other(Path& path, SendId id) noexcept {
  if (id.slot == work_id::kProbeSlot) return link_->note_heard();
  if (id.slot == work_id::kInBandSlot) {
    path.repair->writes_in_band = false;
    return;
  }
  // Sends that were posted when this was the only path.
  Request& last = requests_[id.slot % wire::kMaxLines];
  complete_before(path, last);
  count_sent(path, last);
}

}  // namespace beeline
