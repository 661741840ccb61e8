// SPDX-License-Identifier: Apache-2.0
//
// The end of comms: with and without a goodbye, and by the death of a process.
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <stdexcept>

#include "common/base/host.h"
#include "tests/component/connect_raw_peer.h"

using namespace beeline;
using namespace beeline::test;

namespace {

void close_both(CommPair& comm) {
  comm.sender->link->send_goodbye(0);
  comm.sender.reset();
  comm.receiver->link->send_goodbye(0);
  comm.receiver.reset();
}

// A control plane with its own device table. Processes share only the fabric.
struct OwnPlane {
  explicit OwnPlane(const TestFabric& fabric, ControlOptions options = control_options())
      : table(scan(fabric)), party(*table, std::move(options)) {}

  std::unique_ptr<DeviceTable> table;
  Party party;
};

ConnectionPtr listen_for(Peer& peer, OwnPlane& own, std::size_t other) {
  Ticket ticket;
  Listener* const listener = own.party.listen(ticket);
  peer.send(other, ticket.bytes);
  ConnectionPtr made = own.party.wait_accept(listener);
  own.party.plane().close(listener);
  return made;
}

ConnectionPtr connect_to(Peer& peer, OwnPlane& own, std::size_t other) {
  Ticket ticket{peer.receive<decltype(Ticket::bytes)>(other)};
  return own.party.wait_connect(ticket);
}

void must_become_dead(const Connection& made) {
  wait_for([&] { return made.link->state() != Link::State::kOpen; }, "the end of the link");
  BL_MUST(made.link->state() == Link::State::kDead);
  BL_MUST(made.link->cause().find("its process ended without goodbye") == 0);
}

// The processors that a thread may use. Thread 0 is the caller.
std::vector<int> cpus_of(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(thread, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

pid_t control_thread() {
  const std::vector<pid_t> found = thread_ids_named("beeline-ctl");
  return found.empty() ? 0 : found.front();
}

}  // namespace

TEST_CASE_METHOD(TwoPlanes, "life: a goodbye tells the peer how many messages are settled",
                 "[component][connect]") {
  CommPair comm = join(a, b);
  comm.sender->link->send_goodbye(17);
  wait_for([&] { return comm.receiver->link->state() == Link::State::kGoodbye; }, "a goodbye");
  CHECK(comm.receiver->link->peer_settled() == 17);
  CHECK(comm.sender->link->state() == Link::State::kOpen);
  comm.sender.reset();
  comm.receiver->link->send_goodbye(18);
  comm.receiver.reset();
  wait_for_quiet();
  CHECK(log.count(LogLevel::kWarn) == 0);
}

TEST_CASE("life: the control thread runs on its configured processors, and no other thread moves",
          "[component][connect]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  const std::vector<int> own = cpus_of(0);
  ControlOptions options = control_options();
  options.near_cpus = std::to_string(own.back());
  Party a(*table, options);
  Ticket ticket;
  Listener* const listener = a.listen(ticket);
  wait_for([&] { return cpus_of(control_thread()) == std::vector<int>{own.back()}; }, "its mask");
  CHECK(cpus_of(0) == own);
  a.plane().close(listener);
}

TEST_CASE_METHOD(TwoPlanes, "life: the control thread ends with the last comm, and starts again",
                 "[component][connect]") {
  CHECK(threads_named("beeline-ctl") == 0);
  for (int round = 0; round < 3; ++round) {
    CommPair comm = join(a, b);
    CHECK(threads_named("beeline-ctl") == 2);
    prove_write(*comm.receiver, *comm.sender);
    close_both(comm);
    wait_for_quiet();
  }
  CHECK(log.count(LogLevel::kWarn) == 0);
}

TEST_CASE_METHOD(TwoPlanes,
                 "life: comms that are opened and closed at once do not disturb each other",
                 "[component][connect]") {
  // Each round may find a control thread or a channel that is just about to end.
  for (int round = 0; round < 40; ++round) {
    CommPair comm = round % 2 == 0 ? join(a, b) : join(b, a);
    close_both(comm);
  }
  wait_for_quiet();
  INFO(log.all_text());
  CHECK(log.count(LogLevel::kWarn) == 0);
}

TEST_CASE_METHOD(TwoPlanes,
                 "life: a connection that is dropped without goodbye is dead for its peer",
                 "[component][connect]") {
  CommPair dropped = join(a, b);
  const CommPair kept = join(a, b);
  dropped.receiver.reset();
  wait_for([&] { return dropped.sender->link->state() == Link::State::kDead; }, "the news");
  CHECK(dropped.sender->link->cause() == "it says: its end of the connection was given up");
  CHECK(kept.sender->link->state() == Link::State::kOpen);
}

TEST_CASE_METHOD(TwoPlanes, "life: when one end fails, the other ends with the same reason",
                 "[component][connect]") {
  CommPair comm = join(a, b);
  comm.sender->link->send_failure("cannot go on: a reason");
  wait_for([&] { return comm.receiver->link->state() == Link::State::kDead; }, "the news");
  CHECK(comm.receiver->link->cause() == "it says: cannot go on: a reason");
  CHECK(comm.sender->link->state() == Link::State::kOpen);
  close_both(comm);
  wait_for_quiet();
}

TEST_CASE_METHOD(TwoPlanes,
                 "life: a connect that was not returned does not outlive its control plane",
                 "[component][connect]") {
  Ticket ticket;
  Listener* const listener = a.listen(ticket);
  BL_MUST(must(b.connect(ticket)) == nullptr);
  const ConnectionPtr receiver = a.wait_accept(listener);
  b.end();
  wait_for([&] { return receiver->link->state() == Link::State::kDead; }, "the end of the link");
  a.plane().close(listener);
}

TEST_CASE("life: a killed process is noticed on the sending and on the receiving side",
          "[component][connect]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses, {[&](Peer& peer) {
                                     OwnPlane own(fabric);
                                     const ConnectionPtr receiver = listen_for(peer, own, 1);
                                     const ConnectionPtr sender = connect_to(peer, own, 1);
                                     BL_MUST(receiver->link->peer().pid != getpid());
                                     peer.kill(1);
                                     must_become_dead(*receiver);
                                     must_become_dead(*sender);
                                   },
                                   [&](Peer& peer) {
                                     OwnPlane own(fabric);
                                     const ConnectionPtr sender = connect_to(peer, own, 0);
                                     const ConnectionPtr receiver = listen_for(peer, own, 0);
                                     peer.receive<int>(0);  // never
                                   }});
}

TEST_CASE("life: a killed process is noticed although its forked children live on",
          "[component][connect]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses, {[&](Peer& peer) {
                                     OwnPlane own(fabric);
                                     const ConnectionPtr receiver = listen_for(peer, own, 1);
                                     const auto child = peer.receive<pid_t>(1);
                                     peer.kill(1);
                                     must_become_dead(*receiver);
                                     BL_MUST(::kill(child, SIGKILL) == 0);
                                   },
                                   [&](Peer& peer) {
                                     OwnPlane own(fabric);
                                     const ConnectionPtr sender = connect_to(peer, own, 0);
                                     const pid_t child = fork();
                                     if (child == 0) {
                                       for (;;) pause();
                                     }
                                     peer.send(0, child);
                                     peer.receive<int>(0);  // never
                                   }});
}

TEST_CASE("life: a forked child cannot send on its parent's channels", "[component][connect]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses, {[&](Peer&) {
              const auto table = scan(fabric);
              Party a(*table);
              Party b(*table);
              CommPair comm = join(a, b);
              const pid_t child = fork();
              if (child == 0) {
                // The child uses the channels' descriptor numbers for other sockets.
                int ends[16][2];
                for (auto& pair : ends) BL_MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
                comm.sender->link->send_goodbye(5);  // not its own
                comm.sender->link.reset();
                bool quiet = true;
                for (auto& pair : ends) {
                  char byte = 0;
                  for (const int end : pair) quiet &= recv(end, &byte, 1, MSG_DONTWAIT) < 0;
                }
                _exit(quiet ? 0 : 1);
              }
              int status = 0;
              BL_MUST(waitpid(child, &status, 0) == child && status == 0);
              // A later message over the same channel still arrives.
              const CommPair later = join(a, b);
              BL_MUST(comm.receiver->link->state() == Link::State::kOpen);
              close_both(comm);
            }});
}

TEST_CASE("life: a stopped process is not dead", "[component][connect][slow]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  ControlOptions options = control_options();
  options.peer_timeout = std::chrono::milliseconds(1500);
  run_peers(PeerMode::kProcesses,
            {[&](Peer& peer) {
               OwnPlane own(fabric, options);
               const ConnectionPtr receiver = listen_for(peer, own, 1);
               const auto victim = peer.receive<pid_t>(1);
               BL_MUST(::kill(victim, SIGSTOP) == 0);
               // Much longer than the timeout for a silent host.
               const auto until = Clock::now() + std::chrono::seconds(6);
               while (Clock::now() < until) {
                 BL_MUST(receiver->link->state() == Link::State::kOpen);
                 const timespec moment{.tv_sec = 0, .tv_nsec = 50'000'000};
                 nanosleep(&moment, nullptr);
               }
               BL_MUST(::kill(victim, SIGCONT) == 0);
               peer.meet();
               wait_for([&] { return receiver->link->state() == Link::State::kGoodbye; },
                        "the goodbye of the process that goes on");
             },
             [&](Peer& peer) {
               OwnPlane own(fabric, options);
               const ConnectionPtr sender = connect_to(peer, own, 0);
               peer.send(0, getpid());
               peer.meet();
               sender->link->send_goodbye(1);
             }});
}

TEST_CASE("life: port events are logged and reported", "[component][connect]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  const LogCapture log;
  struct Counter final : PortEvents {
    void on_device_event(const DeviceContext& context, const verbs::AsyncEvent& event) override {
      if (context.ibdev() != "softnic0") return;
      ++(event.kind == verbs::EventKind::kPortError ? errors : others);
    }
    void on_device_back(const DeviceContext&) override {}
    std::atomic<int> errors{0};
    std::atomic<int> others{0};
  } events;
  Party a(*table, control_options(), &events);
  Party b(*table);
  const CommPair comm = join(a, b);
  fabric.command("h0/softnic0", "down");
  wait_for([&] { return events.errors == 1; }, "the event");
  CHECK(log.has("device softnic0 port 1: port error"));
  fabric.command("h0/softnic0", "up");
  wait_for([&] { return events.others > 0; }, "the event");
  CHECK(log.has("device softnic0 port 1: port active"));
  CHECK(log.count(LogLevel::kWarn) >= 2);  // whoever has read the first reads the second as well
}

TEST_CASE_METHOD(TwoPlanes,
                 "life: a device that is gone ends its connections, and the peers are told",
                 "[component][connect]") {
  const CommPair comm = join(a, b);
  Ticket elsewhere;
  Listener* const listener = b.listen(elsewhere, "softnic1");
  const ConnectionPtr kept = a.wait_connect(elsewhere, "softnic1");
  Ticket later;
  Listener* const gone = a.listen(later);

  fabric.command("h0/softnic0", "remove");
  wait_for([&] { return comm.receiver->link->state() == Link::State::kDeviceGone; }, "the event");
  const std::string cause = "the cause is at " + host_name() + ":softnic0: the device was removed";
  CHECK(comm.receiver->link->cause().starts_with(cause));
  wait_for([&] { return comm.sender->link->state() == Link::State::kDead; }, "the news");
  CHECK(comm.sender->link->cause().starts_with("it says: " + cause));
  CHECK(kept->link->state() == Link::State::kOpen);
  CHECK(log.count("device softnic0 was removed from this host") == 1);

  CHECK(b.wait_connect_error(later).code != Errc::kTimeout);
  CHECK(log.has("removed from this host, or failed for good"));
  a.plane().close(gone);
  b.plane().close(listener);
}

TEST_CASE(
    "life: when the control thread fails, all waiting calls fail, and the next one starts a new "
    "thread",
    "[component][connect]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  const LogCapture log;
  struct FailsOnce final : PortEvents {
    void on_device_event(const DeviceContext&, const verbs::AsyncEvent&) override {
      if (fail.exchange(false)) throw std::runtime_error("a reason");
    }
    void on_device_back(const DeviceContext&) override {}
    std::atomic<bool> fail{true};
  } events;
  Party a(*table, control_options(), &events);
  Party b(*table);
  CommPair comm = join(a, b);
  Ticket ticket;
  Listener* const listener = a.listen(ticket);
  Ticket nowhere = ticket;
  const ConnectionPtr unaccepted = b.wait_connect(ticket);
  FakeListener silent;
  BL_MUST(must(a.connect(silent.ticket(), "softnic0")) == nullptr);

  fabric.command("h0/softnic0", "down");
  wait_for(
      [&] { return log.has("the control thread ends, and with it all connections: a reason"); },
      "the end of the control thread");
  wait_for([&] { return comm.receiver->link->state() == Link::State::kDead; }, "the end of a link");
  CHECK(comm.receiver->link->cause().ends_with("the control thread of its process has failed"));
  CHECK(a.wait_connect_error(silent.ticket(), "softnic0").code == Errc::kInternal);
  BL_MUST(must(a.accept(listener)) != nullptr);  // established before the failure
  CHECK(!a.accept(listener));
  CHECK(must(a.accept(listener)) == nullptr);  // the error is reported once
  a.plane().close(listener);
  wait_for([&] { return comm.sender->link->state() == Link::State::kDead; }, "the news");
  CHECK(b.wait_connect_error(nowhere).code != Errc::kOk);

  fabric.command("h0/softnic0", "up");
  const CommPair next = join(a, b);
  prove_write(*next.receiver, *next.sender);
}
