// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/coordinator.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/base/clock.h"
#include "tools/perf/gathered.h"
#include "tools/perf/json.h"

namespace beeline::perf {
namespace {

constexpr int kTickMs = 200;
// How long other ranks may report their failures after the first one: if a rank died, that is the
// cause, and the error of its peer is only the effect.
constexpr std::int64_t kGraceNs = 400 * kNsPerMs;
constexpr std::int64_t kQuietNs = 3 * kNsPerSec;
constexpr std::int64_t kExitNs = 20 * kNsPerSec;

// waitpid with a deadline. Returns 0 if the process is still running.
pid_t wait_until(pid_t pid, std::int64_t deadline, int* status) {
  for (;;) {
    const pid_t ended = ::waitpid(pid, status, WNOHANG);
    if (ended != 0 || now_ns() > deadline) return ended;
    ::usleep(1000);
  }
}

std::string death_of(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("died of signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

Coordinator::Coordinator(const Options& options, const Pattern& pattern,
                         std::vector<Member> members)
    : options_(options), report_(options, pattern), started_ns_(now_ns()), progress_ns_(now_ns()) {
  for (Member& member : members) ranks_.push_back({.member = std::move(member)});
}

Coordinator::~Coordinator() { end_ranks(); }

int Coordinator::run() {
  // A rank that connected may have sent more than its hello, and that has been read already.
  for (size_t r = 0; r < ranks_.size(); ++r) take_frames(r);
  while (!is_over()) {
    poll_sockets();
    check_hang();
    show_progress();
  }
  clear_progress();
  if (failures_.empty()) wait_for_exits();
  if (!failures_.empty()) return report_failures();
  return options_.list ? 0 : report_.end();
}

bool Coordinator::is_over() const {
  if (!failures_.empty() && now_ns() - failed_ns_ > grace_ns()) return true;
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const RankState& rank_state) { return rank_state.done; });
}

void Coordinator::poll_sockets() {
  std::vector<pollfd> waiting;
  std::vector<size_t> ranks;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].done) continue;
    waiting.push_back({ranks_[r].member.socket.fd(), POLLIN, 0});
    ranks.push_back(r);
  }
  if (::poll(waiting.data(), waiting.size(), kTickMs) <= 0) return;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].revents != 0) serve(ranks[i]);
  }
}

void Coordinator::serve(size_t rank) {
  ranks::FrameSocket& socket = ranks_[rank].member.socket;
  const bool open = socket.read_some();
  take_frames(rank);
  if (!open && !ranks_[rank].done) on_hang_up(rank);
}

void Coordinator::take_frames(size_t rank) {
  while (const std::optional<ranks::Frame> frame = ranks_[rank].member.socket.next())
    handle(rank, *frame);
}

void Coordinator::handle(size_t rank, const ranks::Frame& frame) {
  RankState& rank_state = ranks_[rank];
  if (frame.kind != ranks::FrameKind::kStatus) progress_ns_ = now_ns();
  switch (frame.kind) {
    case ranks::FrameKind::kPlugin:
      rank_state.facts = decode_facts(frame.body);
      return rank_state.facts ? try_begin() : refuse(rank);
    case ranks::FrameKind::kStatus: take_status(rank, frame.body); return;
    case ranks::FrameKind::kGather: {
      const size_t end = frame.body.find('\0');
      rank_state.gathering_for = frame.body.substr(0, end);
      rank_state.part = frame.body.substr(end + 1);
      try_gather();
      return;
    }
    case ranks::FrameKind::kRow: {
      std::optional<Row> row = decode_row(frame.body);
      if (!row) return refuse(rank);
      rank_state.rows.push_back(std::move(*row));
      return try_rows();
    }
    case ranks::FrameKind::kFailed: return take_failure(rank, frame.body);
    case ranks::FrameKind::kDone: rank_state.done = true; return;
    case ranks::FrameKind::kHello:
    case ranks::FrameKind::kGathered:
    case ranks::FrameKind::kWelcome:
    case ranks::FrameKind::kChallenge:
    case ranks::FrameKind::kProof: break;  // ranks do not send these
  }
  refuse(rank);
}

// The run fails if a rank reports a failure, even with status 0.
void Coordinator::take_failure(size_t rank, const std::string& body) {
  ranks_[rank].done = true;
  if (failures_.empty()) failed_ns_ = now_ns();
  const bool is_usage = !body.empty() && body[0] == tools::kUsage;
  const std::string why = body.size() > 1 ? body.substr(1) : "failed without an error message";
  failures_.push_back(
      {fmt::format("rank {}: {}", rank, why), is_usage ? tools::kUsage : tools::kFailed, false});
}

void Coordinator::refuse(size_t rank) {
  take_failure(rank, fmt::format("{}sent an invalid message; start all ranks with the same "
                                 "version of beeline",
                                 static_cast<char>(tools::kFailed)));
}

void Coordinator::take_status(size_t rank, const std::string& body) {
  std::optional<Status> status = decode_status(body);
  if (!status) return refuse(rank);
  std::optional<Status>& before = ranks_[rank].status;
  const bool moved = !before || status->done != before->done || status->phase != before->phase;
  if (moved) progress_ns_ = now_ns();
  before = std::move(status);
}

void Coordinator::try_begin() {
  std::vector<RankFacts> ranks;
  for (const RankState& rank_state : ranks_) {
    if (!rank_state.facts) return;
    ranks.push_back(*rank_state.facts);
  }
  begun_ = true;
  if (options_.list) {
    fmt::print("{}", ranks.front().text);
  } else {
    report_.begin(std::move(ranks));
  }
}

void Coordinator::try_rows() {
  const auto has_row = [](const RankState& rank_state) { return !rank_state.rows.empty(); };
  while (begun_ && std::all_of(ranks_.begin(), ranks_.end(), has_row)) {
    std::vector<Row> shares;
    for (RankState& rank_state : ranks_) {
      shares.push_back(std::move(rank_state.rows.front()));
      rank_state.rows.pop_front();
    }
    clear_progress();
    report_.add_row(std::move(shares));
  }
}

void Coordinator::try_gather() {
  std::vector<std::string> parts;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (!ranks_[r].part) return;
    if (ranks_[r].gathering_for != ranks_.front().gathering_for) {
      failures_.push_back({fmt::format("rank {} is at \"{}\", rank 0 at \"{}\": start all ranks "
                                       "with the same options",
                                       r, ranks_[r].gathering_for, ranks_.front().gathering_for),
                           tools::kUsage, false});
      failed_ns_ = 0;
      return;
    }
    parts.push_back(*ranks_[r].part);
  }
  const std::string body = join_parts(parts);
  for (RankState& rank_state : ranks_) {
    rank_state.part.reset();
    rank_state.gathering_for.clear();
    rank_state.member.socket.send(ranks::FrameKind::kGathered, body);
  }
}

void Coordinator::on_hang_up(size_t rank) {
  RankState& rank_state = ranks_[rank];
  rank_state.done = true;
  std::string how = "closed its connection";
  int status = 0;
  if (rank_state.member.pid > 0 && wait_until(rank_state.member.pid, now_ns() + 2 * kNsPerSec,
                                              &status) == rank_state.member.pid) {
    rank_state.member.pid = 0;
    how = death_of(status);
  }
  if (failures_.empty()) failed_ns_ = now_ns();
  failures_.push_back(
      {fmt::format("rank {} {}, {}", rank, how, activity_of(rank)), tools::kFailed, true});
}

std::int64_t Coordinator::grace_ns() const {
  const auto held = static_cast<std::int64_t>(options_.hold_seconds * kNsPerSec);
  return std::max(kGraceNs, held);
}

// The end of a sentence about a rank.
std::string Coordinator::activity_of(size_t rank) const {
  const RankState& rank_state = ranks_[rank];
  if (rank_state.part)
    return fmt::format("waiting for the other ranks at \"{}\"", rank_state.gathering_for);
  if (!rank_state.status) return "last phase: starting";
  return fmt::format("last phase: {}{}", rank_state.status->phase, rank_state.status->waiting);
}

void Coordinator::check_hang() {
  if (!failures_.empty() || now_ns() - progress_ns_ < options_.timeout_seconds * kNsPerSec) return;
  std::string text =
      fmt::format("no rank made progress for {} s (--timeout)", options_.timeout_seconds);
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (!ranks_[r].done) text += fmt::format("\n  rank {} {}", r, activity_of(r));
  }
  failures_.push_back({text, tools::kFailed, true});
  failed_ns_ = 0;
}

// All work is done, and the processes have only to exit. A plugin may still crash or hang there.
void Coordinator::wait_for_exits() {
  const std::int64_t deadline = now_ns() + kExitNs;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    pid_t& pid = ranks_[r].member.pid;
    if (pid == 0) continue;
    int status = 0;
    if (wait_until(pid, deadline, &status) != pid) {
      failures_.push_back(
          {fmt::format("rank {} is done, but its process does not exit", r), tools::kFailed, true});
      continue;
    }
    pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    failures_.push_back(
        {fmt::format("rank {} was done, and then {}", r, death_of(status)), tools::kFailed, true});
  }
}

void Coordinator::end_ranks() {
  for (RankState& rank_state : ranks_) {
    rank_state.member.socket.close();
    if (rank_state.member.pid <= 0) continue;
    ::kill(rank_state.member.pid, SIGKILL);
    ::waitpid(rank_state.member.pid, nullptr, 0);
    rank_state.member.pid = 0;
  }
}

// Deaths come first, because they are causes.
int Coordinator::report_failures() {
  std::stable_sort(
      failures_.begin(), failures_.end(),
      [](const RankFailure& a, const RankFailure& b) { return a.is_death && !b.is_death; });
  std::vector<std::string> told;
  for (const RankFailure& failure : failures_) {
    // Every rank reports the same mistake in the command line. It is printed once.
    const std::string words =
        failure.text.substr(std::min(failure.text.find(": "), failure.text.size()));
    if (!failure.is_death && std::find(told.begin(), told.end(), words) != told.end()) continue;
    told.push_back(words);
    tools::print_error(failure.text);
  }
  if (report_.wrong() > 0)
    tools::print_error(fmt::format("{} wrong elements so far", report_.wrong()));
  return failures_.front().code;
}

void Coordinator::show_progress() {
  if (now_ns() - started_ns_ < kQuietNs || ::isatty(STDERR_FILENO) == 0) return;
  std::uint64_t done = 0;
  for (const RankState& rank_state : ranks_)
    done += rank_state.status ? rank_state.status->done : 0;
  fmt::print(stderr, "\r\x1b[K# {} s, {}, {} requests done", (now_ns() - started_ns_) / kNsPerSec,
             ranks_.front().status ? ranks_.front().status->phase : "", done);
  is_progress_shown_ = true;
}

void Coordinator::clear_progress() {
  if (is_progress_shown_) fmt::print(stderr, "\r\x1b[K");
  is_progress_shown_ = false;
}

}  // namespace beeline::perf
