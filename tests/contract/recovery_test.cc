// SPDX-License-Identifier: Apache-2.0
//
// BEELINE_RECOVERY: a connection goes on without a NIC that fails, or waits for it if it has no
// other, and uses it again when it is back. These tests need a fabric with eight NICs on each host.
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "tests/contract/flow.h"
#include "tests/contract/forks.h"
#include "tests/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kRounds = 60;
constexpr size_t kFaultAfter = 20;
constexpr size_t kAtOnce = 6;
constexpr size_t kBytesEach = 700'001;

void want_recovery(Peer&) {
  setenv("BEELINE_RAILS", "4", 1);
  setenv("BEELINE_RECOVERY", "1", 1);
  // The device reports after a fraction of a second that nothing is acknowledged.
  setenv("BEELINE_TIMEOUT", "12", 1);
  setenv("BEELINE_RETRY_CNT", "3", 1);
}

// A request and its buffer.
struct Transfer {
  std::unique_ptr<Buffer> buffer;
  Request request;
};

void send_rounds(Sender& end, const std::string& target, const std::string& fault) {
  std::deque<Transfer> under_way;
  for (size_t i = 0; i < kRounds; ++i) {
    if (i == kFaultAfter) disturb(target, fault);
    if (under_way.size() == kAtOnce) {
      under_way.front().request.finish();
      under_way.pop_front();
    }
    auto buffer = std::make_unique<Buffer>(end, kBytesEach);
    buffer->fill(0, kBytesEach, static_cast<uint32_t>(i));
    Request request = end.send(buffer->all());
    under_way.push_back({std::move(buffer), std::move(request)});
  }
  for (Transfer& one : under_way) one.request.finish();
}

void receive_rounds(Receiver& end) {
  std::deque<Transfer> under_way;
  const auto finish_oldest = [&] {
    under_way.front().request.finish();
    under_way.front().buffer->must_hold();
    under_way.pop_front();
  };
  for (size_t i = 0; i < kRounds; ++i) {
    if (under_way.size() == kAtOnce) finish_oldest();
    auto buffer = std::make_unique<Buffer>(end, kBytesEach);
    buffer->expect(0, kBytesEach, static_cast<uint32_t>(i));
    Request request = end.receive(buffer->all());
    under_way.push_back({std::move(buffer), std::move(request)});
  }
  while (!under_way.empty()) finish_oldest();
}

void must_have_lost_path(End& end) {
  BL_MUST(
      either_warns(end.peer, {"is out of use", "took over ", " ms after this end had noticed"}));
}

}  // namespace

TEST_CASE("recovery: every byte arrives although a NIC of several fails, which is used again",
          "[contract][recovery]") {
  const bool is_at_sender = GENERATE(true, false);
  const std::string target = is_at_sender ? "h0/softnic1" : "h1/softnic6";
  // A device that was removed is another one for the process when it returns.
  const auto [fault, undo, why] = GENERATE(table<std::string, std::string, std::string>(
      {{"down", "reset", "its port is DOWN"},
       {"blackhole", "reset", "no answer after all retries"},
       {"remove", "return", "its device was removed from its host"},
       {"event=qp_fatal", "reset", "is out of use"},
       {"event=cq_err", "reset", "is out of use"}}));
  CAPTURE(target, fault);
  const UndoneFaults undone(target);
  const auto must_have_left_it = [&, why = why](End& end) {
    must_have_lost_path(end);
    BL_MUST(either_warns(end.peer, {why}));
  };
  // In the meantime NCCL calls neither end.
  const auto wait_until_used = [](End& end) {
    const auto is_used = [] {
      return log_has(NCCL_LOG_WARN, {"is in use again after ", " s (generation "});
    };
    wait_until(is_used, "the failed path");
    end.peer.meet();
  };
  run_flow(
      {Abi::kV12, PeerMode::kProcesses}, want_recovery,
      [&, fault = fault, undo = undo](Sender& end) {
        send_rounds(end, target, fault);
        must_have_left_it(end);
        disturb(target, undo);
        wait_until_used(end);
        send_rounds(end, target, "up");
      },
      [&](Receiver& end) {
        receive_rounds(end);
        must_have_left_it(end);
        wait_until_used(end);
        receive_rounds(end);
      });
}

// It may come back with another address.
TEST_CASE("recovery: a connection whose only NIC fails waits for it", "[contract][recovery]") {
  const std::string target = GENERATE("h0/softnic0", "h1/softnic7");
  const auto [fault, undo] = GENERATE(table<std::string, std::string>(
      {{"down", "gid=3:::ffff:10.77.0.1"}, {"blackhole", "reset"}}));
  CAPTURE(target, fault);
  const UndoneFaults undone(target);
  const auto prepare = [](Peer& peer) {
    want_recovery(peer);
    unsetenv("BEELINE_RAILS");
  };
  run_flow(
      {Abi::kV12, PeerMode::kProcesses}, prepare,
      [&, fault = fault, undo = undo](Sender& end) {
        std::jthread repair([&] {
          wait_until([] { return log_has(NCCL_LOG_WARN, {"the connection waits"}); }, "the fault");
          disturb(target, undo);
          disturb(target, "up");
        });
        send_rounds(end, target, fault);
        BL_MUST(log_has(NCCL_LOG_WARN, {"is in use again"}));
      },
      receive_rounds);
}

// As when NCCL aborts: what is under way is given up with the connection.
TEST_CASE("recovery: a connection that waits for its only NIC can be closed",
          "[contract][recovery]") {
  const bool sender_closes = GENERATE(true, false);
  CAPTURE(sender_closes);
  const std::string target = "h0/softnic0";
  const UndoneFaults undone(target);
  const auto prepare = [](Peer& peer) {
    want_recovery(peer);
    unsetenv("BEELINE_RAILS");
  };
  const auto wait_for_outage = [](End& end, Request& request) {
    const auto is_waiting = [&] {
      BL_MUST(!request.poll());
      return log_has(NCCL_LOG_WARN, {"the connection waits"});
    };
    wait_until(is_waiting, "the fault");
    end.peer.meet();
  };
  // The peer of an end that has closed is told so, by the control channel.
  const auto must_be_told = [](Request& request) {
    BL_MUST(poll_until_error(request) == ncclRemoteError);
  };
  run_flow(
      {Abi::kV12, PeerMode::kProcesses}, prepare,
      [&](Sender& end) {
        Buffer buffer(end, kBytesEach);
        end.send(buffer.all()).finish();
        end.peer.meet();  // the receiver has granted one more
        disturb(target, "blackhole");
        Request request = end.send(buffer.all());
        wait_for_outage(end, request);
        if (!sender_closes) must_be_told(request);
        buffer.drop();
        end.comm.close();
        end.peer.meet();
        disturb(target, "reset");
        must_carry(end.net(), link_to_self(end.session, 0, 0), 3);
      },
      [&](Receiver& end) {
        Buffer buffer(end, kBytesEach);
        end.receive(buffer.all()).finish();
        Request request = end.receive(buffer.all());
        end.peer.meet();
        wait_for_outage(end, request);
        if (sender_closes) must_be_told(request);
        buffer.drop();
        end.comm.close();
        end.peer.meet();
      });
}

TEST_CASE("recovery: a process may fork while a NIC is out of use", "[contract][recovery]") {
  const Leave leave = GENERATE(Leave::kExit, Leave::kQuickly);
  CAPTURE(leave == Leave::kExit);
  const std::string target = "h0/softnic1";
  const UndoneFaults undone(target);
  const auto fork_and_wait = [&](End& end) {
    must_have_lost_path(end);
    fork_and_leave(leave);
    end.peer.meet();
    disturb(target, "reset");
    wait_until([] { return log_has(NCCL_LOG_WARN, {"is in use again"}); }, "the failed path");
    end.peer.meet();
  };
  run_flow(
      {Abi::kV12, PeerMode::kProcesses}, want_recovery,
      [&](Sender& end) {
        send_rounds(end, target, "down");
        fork_and_wait(end);
        send_rounds(end, target, "up");
      },
      [&](Receiver& end) {
        receive_rounds(end);
        fork_and_wait(end);
        receive_rounds(end);
      });
}

// The only NIC of one end fails for good, and another one of that host carries on.
TEST_CASE("recovery: another NIC stands in for the only one", "[contract][recovery]") {
  const auto [target, fault, abi] = GENERATE(table<std::string, std::string, Abi>(
      {{"h0/softnic0", "down", Abi::kV8}, {"h1/softnic7", "remove", Abi::kV12}}));
  CAPTURE(abi, target, fault);
  const UndoneFaults undone(target);
  const auto prepare = [](Peer& peer) {
    want_recovery(peer);
    unsetenv("BEELINE_RAILS");
  };
  const auto must_stand_in = [](End& end) {
    BL_MUST(either_warns(end.peer, {"is in use again", "stands in for softnic"}));
  };
  run_flow(
      {abi, PeerMode::kProcesses}, prepare,
      [&, target = target, fault = fault](Sender& end) {
        send_rounds(end, target, fault);
        must_stand_in(end);
      },
      [&](Receiver& end) {
        receive_rounds(end);
        must_stand_in(end);
      });
}

// NCCL has taken such a receive for done, and makes no call for the receiver's connection until the
// data is there. The control thread has to answer the sender.
TEST_CASE("recovery: an end that NCCL does not call answers", "[contract][recovery]") {
  constexpr size_t kReceives = 20;
  const std::string target = "h0/softnic1";
  const UndoneFaults undone(target);
  const auto prepare = [](Peer& peer) {
    want_recovery(peer);
    setenv("BEELINE_EARLY_DONE", "1", 1);
  };
  run_flow(
      {Abi::kV12, PeerMode::kProcesses}, prepare,
      [&](Sender& end) {
        end.peer.meet();
        disturb(target, "blackhole");
        Buffer buffer(end, kReceives * kBytesEach);
        std::deque<Request> requests;
        for (size_t i = 0; i < kReceives; ++i) {
          buffer.fill(i * kBytesEach, kBytesEach, static_cast<uint32_t>(i));
          requests.push_back(end.send(buffer.part(i * kBytesEach, kBytesEach)));
        }
        for (Request& request : requests) request.finish();
        end.peer.meet();
      },
      [&](Receiver& end) {
        Buffer buffer(end, kReceives * kBytesEach);
        for (size_t i = 0; i < kReceives; ++i) {
          buffer.expect(i * kBytesEach, kBytesEach, static_cast<uint32_t>(i));
          Request receive =
              irecv_optional(end.net(), end.comm, buffer.part(i * kBytesEach, kBytesEach));
          BL_MUST(receive.poll());
        }
        end.peer.meet();
        wait_until([&] { return buffer.holds(0, buffer.size()); }, "the data");
        end.peer.meet();
      });
}
