// SPDX-License-Identifier: Apache-2.0
//
// BEELINE_RECOVERY: a connection goes on without a NIC that fails, or waits for it if it has no
// other, and uses it again when it is back. These tests need a fabric with eight NICs on each host.
// They show that the plugin does this with devices, threads and a control channel of a process, and
// what the log says; tests/plugin/simulation has all kinds and orders of faults.
#include <string>
#include <thread>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/forks.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr uint32_t kRounds = 60;
constexpr uint32_t kFaultAfter = 20;
constexpr size_t kBytesEach = 700'001;

// The device reports after a fraction of a second that nothing is acknowledged.
struct Recovery {
  explicit Recovery(const char* nics) : rails("BEELINE_RAILS", nics) {}
  Variable rails;
  Variable timeout{"BEELINE_TIMEOUT", "12"};
  Variable retries{"BEELINE_RETRY_CNT", "3"};
};

// The fault happens in the middle.
void send_rounds(const Sender& end, const std::string& target, const std::string& fault) {
  send_messages(end, kBytesEach, kRounds, [&](uint32_t number) {
    if (number == kFaultAfter) disturb(target, fault);
  });
}
void receive_rounds(const Receiver& end) { receive_messages(end, kBytesEach, kRounds); }

void wait_until_logged(ncclDebugLogLevel level, const std::vector<std::string>& words) {
  wait_until([&] { return log_has(level, words); }, words.front().c_str());
}

// Moves data through the fault, undoes it, and moves data again. Neither end may make calls
// meanwhile, except for `meanwhile`.
void lose_and_use_again(
    const std::string& target, const std::string& fault, const std::string& undo,
    const std::string& why, const std::function<void()>& meanwhile = [] {}) {
  const UndoneFaults undone(target);
  const auto wait_for_return = [&](End& end) {
    BL_MUST(either_warns(end.peer, {why, "1 connection went over to softnic"}));
    meanwhile();
    end.peer.meet();
    if (end.peer.rank() == kSenderRank) disturb(target, undo);
    wait_until_logged(NCCL_LOG_INFO, {"is in use again after ", " s (generation "});
    BL_MUST(either_warns(end.peer, {"1 connection uses it again, after "}));
    end.peer.meet();
  };
  run_flow(
      [&](Sender& end) {
        send_rounds(end, target, fault);
        wait_for_return(end);
        send_rounds(end, target, "up");
      },
      [&](Receiver& end) {
        receive_rounds(end);
        wait_for_return(end);
        receive_rounds(end);
      });
}

}  // namespace

TEST_CASE("recovery: every byte arrives although a NIC of several fails, which is used again",
          "[contract][recovery]") {
  // A device that was removed is another one for the process when it returns.
  const auto [target, fault, undo, why] =
      GENERATE(table<std::string, std::string, std::string, std::string>(
          {{"h0/softnic1", "down", "reset", " of this host went DOWN"},
           {"h1/softnic6", "blackhole", "reset", "no answer after all retries"},
           {"h0/softnic1", "remove", "return", " of this host is gone (its device was removed"},
           {"h1/softnic6", "event=qp_fatal", "reset", " has failed ("}}));
  CAPTURE(target, fault);
  const Recovery recovery("4");
  lose_and_use_again(target, fault, undo, why);
}

TEST_CASE("recovery: a process may fork while a NIC is out of use", "[contract][recovery]") {
  const Recovery recovery("4");
  lose_and_use_again("h0/softnic1", "down", "reset", " of this host went DOWN",
                     [] { fork_and_leave(Leave::kExit); });
}

// It may come back with another address.
TEST_CASE("recovery: a connection whose only NIC fails waits for it", "[contract][recovery]") {
  const auto [target, fault, undo] = GENERATE(table<std::string, std::string, std::string>(
      {{"h0/softnic0", "down", "gid=3:::ffff:10.77.0.1"}, {"h1/softnic7", "blackhole", "reset"}}));
  CAPTURE(target, fault);
  const Recovery recovery(nullptr);
  const UndoneFaults undone(target);
  run_flow(
      [&, &target = target, &fault = fault, &undo = undo](Sender& end) {
        const std::jthread repair([&] {
          wait_until_logged(NCCL_LOG_WARN, {"1 connection waits, because no other path works"});
          disturb(target, undo);
          disturb(target, "up");
        });
        send_rounds(end, target, fault);
        BL_MUST(log_has(NCCL_LOG_INFO, {"is in use again"}));
      },
      receive_rounds);
}

// The only NIC of one end fails for good, and another one of that host carries on.
TEST_CASE("recovery: another NIC stands in for the only one", "[contract][recovery]") {
  const auto [target, fault] = GENERATE(
      table<std::string, std::string>({{"h0/softnic0", "down"}, {"h1/softnic7", "remove"}}));
  CAPTURE(target, fault);
  const Recovery recovery(nullptr);
  const UndoneFaults undone(target);
  const auto must_stand_in = [](End& end) {
    BL_MUST(
        either_warns(end.peer, {"1 connection goes on over softnic", ", which stands in, after "}));
  };
  run_flow(
      [&, &target = target, &fault = fault](Sender& end) {
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
  const Recovery recovery("4");
  const Variable early("BEELINE_EARLY_DONE", "1");
  run_flow(
      [&](Sender& end) {
        end.peer.meet();
        disturb(target, "blackhole");
        Buffer buffer(end, kReceives * kBytesEach);
        std::vector<Request> requests;
        for (uint32_t i = 0; i < kReceives; ++i) {
          buffer.fill(i * kBytesEach, kBytesEach, i);
          requests.push_back(end.send(buffer.part(i * kBytesEach, kBytesEach)));
        }
        finish_all(requests);
        end.peer.meet();
      },
      [&](Receiver& end) {
        Buffer buffer(end, kReceives * kBytesEach);
        for (uint32_t i = 0; i < kReceives; ++i) {
          buffer.expect(i * kBytesEach, kBytesEach, i);
          const Part part = buffer.part(i * kBytesEach, kBytesEach);
          BL_MUST(irecv_optional(end.net(), end.comm, part).poll());
        }
        end.peer.meet();
        wait_until([&] { return buffer.holds(0, buffer.size()); }, "the data");
        end.peer.meet();
      });
}
