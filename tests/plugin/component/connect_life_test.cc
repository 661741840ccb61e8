// SPDX-License-Identifier: Apache-2.0
//
// The end of comms: with and without a goodbye, and by the death of a process.
#include <sched.h>

#include <atomic>
#include <stdexcept>

#include "tests/plugin/component/connect_raw_peer.h"

using namespace beeline;
using namespace beeline::test;

namespace {

void close_both(CommPair& comm) {
  comm.sender->link->send_goodbye(0);
  comm.sender.reset();
  comm.receiver->link->send_goodbye(0);
  comm.receiver.reset();
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
  const char* const line = "port softnic0:1 of this host reports an error, and is ACTIVE again";
  wait_for([&] { return log.has(line); }, "a warning");
  CHECK(log.count(LogLevel::kWarn) == 1);
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
