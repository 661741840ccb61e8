// SPDX-License-Identifier: Apache-2.0
//
// The hub of a group of peers. It notices the end of a peer by the end of its socket.
#include "tests/support/peer_group.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "tests/support/peer_frame.h"

// Exists only in a coverage build, where it writes the counters that a process otherwise writes at
// exit.
extern "C" void __gcov_exit() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)

namespace beeline::test {
namespace {

bool run_body(const PeerBody& body, Peer& peer) {
  try {
    body(peer);
    peer.report_done();
    return true;
  } catch (const std::exception& error) {
    peer.report_failure(error.what());
  } catch (...) {
    peer.report_failure("an exception of unknown type");
  }
  return false;
}

[[noreturn]] void run_child(const PeerBody& body, UniqueFd line, size_t rank, size_t count) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no child outlives a test program that crashed
  Peer peer(std::move(line), rank, count);
  const bool good = run_body(body, peer);
  if (__gcov_exit != nullptr) std::exit(good ? 0 : 1);
  _exit(good ? 0 : 1);
}

class Hub {
 public:
  Hub(PeerMode mode, const std::vector<PeerBody>& bodies);
  ~Hub();

  void run(Clock::time_point deadline);

 private:
  struct Member {
    UniqueFd line;  // closed once the member has ended
    pid_t pid = 0;
    std::thread thread;
    bool meeting = false;
  };

  void serve(size_t from);
  void handle(size_t from, const Frame& frame);
  void kill_member(size_t from, size_t victim);
  void finish_meeting();
  void fail(const std::string& why);
  void end_all();

  std::vector<Member> members_;
  std::string failure_;
};

Hub::Hub(PeerMode mode, const std::vector<PeerBody>& bodies) : members_(bodies.size()) {
  std::vector<UniqueFd> far(bodies.size());
  for (size_t i = 0; i < bodies.size(); ++i) {
    int ends[2];
    BL_MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    members_[i].line.reset(ends[0]);
    far[i].reset(ends[1]);
  }
  std::fflush(nullptr);  // a child must not print what the parent has buffered
  for (size_t i = 0; i < bodies.size(); ++i) {
    if (mode == PeerMode::kThreads) {
      members_[i].thread = std::thread(
          [&body = bodies[i], i, count = bodies.size(), line = std::move(far[i])]() mutable {
            Peer peer(std::move(line), i, count);
            run_body(body, peer);
          });
      continue;
    }
    const pid_t pid = fork();
    BL_MUST(pid >= 0);
    if (pid == 0) {
      UniqueFd mine = std::move(far[i]);
      far.clear();
      for (Member& member : members_) member.line.reset();
      run_child(bodies[i], std::move(mine), i, bodies.size());
    }
    members_[i].pid = pid;
    far[i].reset();
  }
}

Hub::~Hub() { end_all(); }

void Hub::fail(const std::string& why) { failure_ += (failure_.empty() ? "" : "\n") + why; }

void Hub::run(Clock::time_point deadline) {
  for (;;) {
    std::vector<pollfd> waiting;
    std::vector<size_t> ranks;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i].line) continue;
      waiting.push_back({members_[i].line.get(), POLLIN, 0});
      ranks.push_back(i);
    }
    if (waiting.empty() || !failure_.empty()) break;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready =
        left <= 0 ? 0 : ::poll(waiting.data(), waiting.size(), static_cast<int>(left));
    if (ready == 0) fail("the group did not end before its deadline");
    for (size_t i = 0; ready > 0 && i < waiting.size(); ++i) {
      if (waiting[i].revents != 0 && members_[ranks[i]].line) serve(ranks[i]);
    }
  }
  end_all();
  if (!failure_.empty()) throw MustError(failure_);
}

void Hub::serve(size_t from) {
  Frame frame;
  if (receive_frame(members_[from].line.get(), &frame)) {
    handle(from, frame);
    return;
  }
  members_[from].line.reset();
  fail("peer " + std::to_string(from) + " ended without a word");
}

void Hub::handle(size_t from, const Frame& frame) {
  const Head forward{frame.head.kind, static_cast<uint32_t>(from)};
  switch (frame.head.kind) {
    case FrameKind::kMessage:
      if (members_.at(frame.head.peer).line) {
        send_frame(members_[frame.head.peer].line.get(), forward, frame.body);
      }
      return;
    case FrameKind::kMeet:
      members_[from].meeting = true;
      finish_meeting();
      return;
    case FrameKind::kKill: kill_member(from, frame.head.peer); return;
    case FrameKind::kDone:
      members_[from].line.reset();
      finish_meeting();
      return;
    case FrameKind::kFailed:
      members_[from].line.reset();
      fail("peer " + std::to_string(from) + ": " + frame.body);
      return;
    case FrameKind::kAnswer:
      fail("peer " + std::to_string(from) + " sent the hub an answer");
      return;
  }
}

void Hub::kill_member(size_t from, size_t victim) {
  Member& member = members_.at(victim);
  if (member.pid <= 0 || !member.line) {
    fail("peer " + std::to_string(victim) + " is no process that could be killed");
    return;
  }
  ::kill(member.pid, SIGKILL);
  waitpid(member.pid, nullptr, 0);
  member.pid = 0;
  member.line.reset();
  send_frame(members_[from].line.get(), {FrameKind::kAnswer, 0}, {});
  finish_meeting();
}

void Hub::finish_meeting() {
  for (const Member& member : members_) {
    if (member.line && !member.meeting) return;
  }
  for (Member& member : members_) {
    if (member.line) send_frame(member.line.get(), {FrameKind::kAnswer, 0}, {});
    member.meeting = false;
  }
}

// After a failure, processes are killed. Threads cannot be killed, but their sockets end, and every
// other wait of a test has a deadline.
void Hub::end_all() {
  const bool failed = !failure_.empty();
  for (Member& member : members_) {
    if (member.line) shutdown(member.line.get(), SHUT_RDWR);
    if (member.pid > 0 && (failed || member.line)) ::kill(member.pid, SIGKILL);
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (member.thread.joinable()) member.thread.join();
    if (member.pid <= 0) continue;
    int status = 0;
    waitpid(member.pid, &status, 0);
    member.pid = 0;
    if (WIFSIGNALED(status) && (!failed || WTERMSIG(status) != SIGKILL)) {
      fail("peer " + std::to_string(i) + " died of signal " + std::to_string(WTERMSIG(status)));
    } else if (!failed && WEXITSTATUS(status) != 0) {
      fail("peer " + std::to_string(i) + " exited with " + std::to_string(WEXITSTATUS(status)));
    }
  }
}

}  // namespace

std::vector<PeerMode> peer_modes() {
  if (!kProcessesWork) return {PeerMode::kThreads};
  return {PeerMode::kThreads, PeerMode::kProcesses};
}

void run_peers(PeerMode mode, const std::vector<PeerBody>& bodies, std::chrono::seconds deadline) {
  Hub hub(mode, bodies);
  hub.run(Clock::now() + deadline);
}

}  // namespace beeline::test
