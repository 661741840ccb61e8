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
#include "tools/cli/output_file.h"
#include "tools/cli/text_width.h"
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

}  // namespace

Coordinator::Coordinator(const Options& options, const Pattern& pattern,
                         std::vector<ranks::Process> processes)
    : options_(options), report_(options, pattern), started_ns_(now_ns()), progress_ns_(now_ns()) {
  for (ranks::Process& one : processes) ranks_.push_back({.process = std::move(one)});
}

Coordinator::~Coordinator() { end_ranks(); }

int Coordinator::run() {
  // A rank that connected may have sent more than its hello, and that has been read already.
  for (size_t r = 0; r < ranks_.size(); ++r) take_lines(r);
  while (!is_over()) {
    poll_sockets();
    check_hang();
    show_progress();
  }
  progress_line_.clear();
  if (failures_.empty()) wait_for_exits();
  if (!failures_.empty()) return report_failures();
  return options_.list ? print_devices() : report_.end();
}

int Coordinator::print_devices() const {
  const bool is_json = !options_.json.empty();
  const Outcome<void> written =
      tools::write_output(is_json ? options_.json : std::string(tools::kStdout),
                          is_json ? devices_ : tools::fitted(devices_, tools::terminal_width()));
  return written ? 0 : tools::print_error(written.error());
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
    waiting.push_back({ranks_[r].process.stream.fd(), POLLIN, 0});
    ranks.push_back(r);
  }
  if (::poll(waiting.data(), waiting.size(), kTickMs) <= 0) return;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].revents != 0) serve(ranks[i]);
  }
}

void Coordinator::serve(size_t rank) {
  const bool is_open = static_cast<bool>(ranks_[rank].process.stream.read_some());
  take_lines(rank);
  if (!is_open && !ranks_[rank].done) on_hang_up(rank);
}

void Coordinator::take_lines(size_t rank) {
  while (const std::optional<std::string> line = ranks_[rank].process.stream.next()) {
    handle(rank, *line);
  }
}

void Coordinator::handle(size_t rank, const std::string& line) {
  if (line.empty()) return refuse(rank);
  RankState& rank_state = ranks_[rank];
  const auto kind = static_cast<Kind>(line[0]);
  const std::string body = line.substr(1);
  if (kind != Kind::kStatus) progress_ns_ = now_ns();
  switch (kind) {
    case Kind::kPlugin:
      rank_state.facts = decode_facts(body);
      return rank_state.facts ? try_begin() : refuse(rank);
    case Kind::kStatus: return take_status(rank, body);
    case Kind::kGather: {
      const size_t end = body.find('\0');
      rank_state.gathering_for = body.substr(0, end);
      rank_state.part = body.substr(end + 1);
      return try_gather();
    }
    case Kind::kRow: {
      std::optional<Row> row = decode_row(body);
      if (!row) return refuse(rank);
      rank_state.rows.push_back(std::move(*row));
      return try_rows();
    }
    case Kind::kFailed: {
      const std::optional<Ended> ended = decode_ended(body);
      return ended ? take_failure(rank, *ended) : refuse(rank);
    }
    case Kind::kDone: rank_state.done = true; return;
  }
  refuse(rank);
}

// The run fails if a rank reports a failure, even with status 0.
void Coordinator::take_failure(size_t rank, const Ended& ended) {
  ranks_[rank].done = true;
  if (failures_.empty()) failed_ns_ = now_ns();
  const std::string why = ended.why.empty() ? "failed without an error message" : ended.why;
  failures_.push_back({fmt::format("rank {}: {}", rank, why),
                       ended.code == tools::kUsage ? tools::kUsage : tools::kFailed, false});
}

void Coordinator::refuse(size_t rank) {
  take_failure(rank, {tools::kFailed,
                      "sent an invalid message; start all ranks with the same version of beeline"});
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
    devices_ = std::move(ranks.front().text);
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
    progress_line_.clear();
    report_.add_row(std::move(shares));
  }
}

void Coordinator::try_gather() {
  std::string parts;
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
    parts += (r == 0 ? "" : " ") + *ranks_[r].part;
  }
  for (RankState& rank_state : ranks_) {
    rank_state.part.reset();
    rank_state.gathering_for.clear();
    (void)rank_state.process.stream.send(parts);
  }
}

void Coordinator::on_hang_up(size_t rank) {
  RankState& rank_state = ranks_[rank];
  rank_state.done = true;
  std::string how = "closed its connection";
  int status = 0;
  pid_t& pid = rank_state.process.pid;
  if (pid > 0 && wait_until(pid, now_ns() + 2 * kNsPerSec, &status) == pid) {
    pid = 0;
    how = ranks::death_of(status, "ended");
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
  const tools::Progress progress("all is done; waiting for the ranks to exit");
  const std::int64_t deadline = now_ns() + kExitNs;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    pid_t& pid = ranks_[r].process.pid;
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
        {fmt::format("rank {} was done, and then {}", r, ranks::death_of(status, "ended")),
         tools::kFailed, true});
  }
}

void Coordinator::end_ranks() {
  for (RankState& rank_state : ranks_) {
    auto& [stream, pid] = rank_state.process;
    stream = {};
    if (pid <= 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = 0;
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
  if (now_ns() - started_ns_ < kQuietNs || !progress_line_.is_seen()) return;
  std::uint64_t done = 0;
  for (const RankState& rank_state : ranks_)
    done += rank_state.status ? rank_state.status->done : 0;
  progress_line_.show(fmt::format("# {} s, {}, {} requests done",
                                  (now_ns() - started_ns_) / kNsPerSec,
                                  ranks_.front().status ? ranks_.front().status->phase : "", done));
}

}  // namespace beeline::perf
