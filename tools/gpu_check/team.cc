// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/team.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "tools/gpu_check/child.h"

namespace beeline::gpu {
namespace {

using Clock = std::chrono::steady_clock;

// After a failure, the other ranks may still report it, or may hang. They get this long.
constexpr std::chrono::seconds kGrace{3};

struct Member {
  explicit Member(Child started) : child(std::move(started)) {}

  Child child;
  std::string last_step = "starting";
  Clock::time_point since = Clock::now();
  bool is_done = false;  // it has sent kDone or kFailed
  bool is_gone = false;  // its socket is closed
};

class Team {
 public:
  Team(const Run& run, const OnCase& on_case)
      : run_(run), on_case_(on_case), results_(run.cases.size()) {}

  std::vector<std::string> work(std::chrono::seconds limit);

 private:
  bool start();
  void listen();
  bool wait_for_word(std::vector<pollfd>& sockets) const;
  bool is_anyone_left() const;
  void hear(std::size_t rank);
  void take(std::size_t rank, const Report& report);
  void take_result(std::size_t rank, const Report& report);
  void share_unique_id(const Report& id);
  void lose(std::size_t rank);
  void end_the_rest();
  void fault(const std::string& what);

  const Run& run_;
  const OnCase& on_case_;
  std::vector<Member> members_;
  std::vector<CaseResult> results_;
  std::vector<std::string> faults_;
  Clock::time_point deadline_{};
};

std::vector<std::string> Team::work(std::chrono::seconds limit) {
  deadline_ = Clock::now() + limit;
  if (start()) listen();
  if (is_anyone_left() && faults_.empty()) {
    faults_.push_back(fmt::format("not done after {} s", limit.count()));
  }
  end_the_rest();
  return faults_;
}

bool Team::start() {
  for (int rank = 0; rank < run_.ranks; ++rank) {
    Outcome<Child> child =
        Child::start([this, rank](const ReportSocket& socket) { run_rank(run_, rank, socket); });
    if (!child) {
      fault(fmt::format("rank {}: {}", rank, child.error().text));
      return false;
    }
    members_.emplace_back(std::move(child).value());
  }
  return true;
}

void Team::listen() {
  std::vector<pollfd> sockets(members_.size());
  while (is_anyone_left()) {
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      const Member& member = members_[rank];
      sockets[rank] = {member.is_gone ? -1 : member.child.socket().fd(), POLLIN, 0};
    }
    if (!wait_for_word(sockets)) return;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      if (sockets[rank].revents != 0) hear(rank);
    }
  }
}

// False when the time is up.
bool Team::wait_for_word(std::vector<pollfd>& sockets) const {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
  if (left <= 0) return false;
  const int heard = poll(sockets.data(), sockets.size(), static_cast<int>(left) + 1);
  return heard >= 0 || errno == EINTR;
}

bool Team::is_anyone_left() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return !member.is_gone; });
}

void Team::hear(std::size_t rank) {
  const std::optional<Report> report = members_[rank].child.socket().receive();
  if (report) {
    take(rank, *report);
  } else {
    lose(rank);
  }
}

void Team::take(std::size_t rank, const Report& report) {
  Member& member = members_[rank];
  switch (report.kind) {
    case ReportKind::kStep:
      member.last_step = report.text.data();
      member.since = Clock::now();
      break;
    case ReportKind::kUniqueId: share_unique_id(report); break;
    case ReportKind::kResult: take_result(rank, report); break;
    case ReportKind::kDone: member.is_done = true; break;
    case ReportKind::kFailed:
      member.is_done = true;
      fault(fmt::format("rank {}: {}, {}", rank, member.last_step, report.text.data()));
      break;
    case ReportKind::kFacts:
    case ReportKind::kUnavailable: break;  // answers of a probe
  }
}

void Team::take_result(std::size_t rank, const Report& report) {
  if (report.index >= results_.size()) return;
  CaseResult& result = results_[report.index];
  if (report.wrong != 0 && result.wrong == 0) {
    result.first_wrong =
        fmt::format("rank {}, round {}: {}", rank, report.round, report.text.data());
  }
  result.wrong += report.wrong;
  result.seconds = std::min(result.seconds, report.seconds);
  ++result.reports;
  const auto all = static_cast<std::uint32_t>(run_.ranks * run_.rounds);
  if (result.reports == all) on_case_(run_.cases[report.index], result);
}

void Team::share_unique_id(const Report& id) {
  for (std::size_t rank = 1; rank < members_.size(); ++rank) members_[rank].child.socket().send(id);
}

void Team::lose(std::size_t rank) {
  Member& member = members_[rank];
  member.is_gone = true;
  const std::string how = member.child.end(false);
  if (!member.is_done) fault(fmt::format("rank {}: {} while {}", rank, how, member.last_step));
}

void Team::end_the_rest() {
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    Member& member = members_[rank];
    if (member.is_gone) continue;
    member.child.end(true);
    const std::chrono::duration<double> stuck = Clock::now() - member.since;
    faults_.push_back(
        fmt::format("rank {}: killed, {} for {:.1f} s", rank, member.last_step, stuck.count()));
  }
}

void Team::fault(const std::string& what) {
  faults_.push_back(what);
  deadline_ = std::min(deadline_, Clock::now() + kGrace);
}

}  // namespace

std::vector<std::string> run_team(const Run& run, std::chrono::seconds limit,
                                  const OnCase& on_case) {
  return Team(run, on_case).work(limit);
}

Outcome<Report> probe_machine(std::chrono::seconds limit) {
  Outcome<Child> child = Child::start([](const ReportSocket& socket) { probe(socket); });
  if (!child) return fail(std::move(child).error());
  pollfd socket{child->socket().fd(), POLLIN, 0};
  const std::chrono::milliseconds patience = limit;
  if (poll(&socket, 1, static_cast<int>(patience.count())) <= 0) {
    return fail(fmt::format("opening CUDA and NCCL took more than {} s", limit.count()));
  }
  const std::optional<Report> report = child->socket().receive();
  if (report) return *report;
  return fail(fmt::format("the process that opened CUDA and NCCL {}", child->end(false)));
}

}  // namespace beeline::gpu
