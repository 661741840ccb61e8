// SPDX-License-Identifier: Apache-2.0
//
// When a peer is killed, both the comm and the log report it, whatever the comm is doing. A peer
// that is only stopped is waited for.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kDeathSize = 100000;
constexpr size_t kDeathWindow = 8;

std::string this_host() {
  std::array<char, 256> name{};
  BL_MUST(gethostname(name.data(), name.size() - 1) == 0);
  return name.data();
}

// Waits for the warning that names both devices and the peer's host. The two devices differ, so
// that neither name can be taken for the other.
void must_be_named() {
  const std::vector<std::string>& devices = fabric_facts().devices;
  wait_until(
      [&] {
        return log_has(NCCL_LOG_WARN, {devices.front(), devices.back(), this_host()});
      },
      "a warning that names both devices and the peer's host");
}

// Waits until the plugin has noticed by itself, on comms that nobody calls. The log line is no
// warning: many programs exit without closing their comms, which harms no peer that has closed its
// own or does not use them.
void must_be_noticed() {
  wait_until([] { return log_has(NCCL_LOG_INFO, {"lost", this_host()}); }, "a line");
}

void move_some(const Sender& end, uint32_t count = 20) { send_messages(end, kDeathSize, count); }
void move_some(const Receiver& end, uint32_t count = 20) {
  receive_messages(end, kDeathSize, count);
}
ncclResult_t error_of(const Sender& end, const Part& part) { return send_until_error(end, part); }
ncclResult_t error_of(const Receiver& end, const Part& part) {
  return receive_until_error(end, part);
}
void wait_for_ever(End& end) { end.peer.meet(); }

// One end does `until_then` until the other one kills it.
template <class Victim, class Survivor>
void kill_one(size_t killed, Victim&& until_then, Survivor&& survive) {
  const auto play = [&](auto& end) {
    if (end.peer.rank() == killed) return until_then(end);
    Buffer memory(end, kDeathSize);
    survive(end, memory.all());
  };
  run_loose_flow([&](Sender& end) { play(end); }, [&](Receiver& end) { play(end); });
}

}  // namespace

// On a busy machine an attempt may take longer than a second, so there are several.
TEST_CASE("death: either end gets an error within a second, and the log names both",
          "[contract][death]") {
  if (!kProcessesWork) return;
  const size_t killed = GENERATE(kSenderRank, kReceiverRank);
  CAPTURE(killed);
  const NoTimeouts unlimited;
  const auto limit = is_slow() ? kPatience : std::chrono::seconds(1);
  auto& is_soon = make_shared_object<std::atomic<bool>>();
  for (int attempts = 10; attempts != 0 && !is_soon; --attempts) {
    kill_one(
        killed, [](auto& end) { move_some(end, UINT32_MAX); },
        [&](auto& end, const Part& part) {
          move_some(end);
          const Clock::time_point begun = Clock::now();
          end.peer.kill(killed);
          BL_MUST(error_of(end, part) == ncclRemoteError);
          if (Clock::now() - begun < limit) is_soon = true;
          must_stay_broken(end, part);
          must_be_named();
        });
  }
  CHECK(is_soon);
}

TEST_CASE("death: an idle end notices with its next call", "[contract][death]") {
  if (!kProcessesWork) return;
  const size_t killed = GENERATE(kSenderRank, kReceiverRank);
  CAPTURE(killed);
  const NoTimeouts unlimited;
  kill_one(
      killed, [](auto& end) { wait_for_ever(end); },
      [&](auto& end, const Part& part) {
        end.peer.kill(killed);
        must_be_noticed();  // before any call
        BL_MUST(error_of(end, part) == ncclRemoteError);
        must_stay_broken(end, part);
        must_be_named();
      });
}

TEST_CASE("death: what had arrived before stays received, and other requests end with an error",
          "[contract][death]") {
  if (!kProcessesWork) return;
  const NoTimeouts unlimited;
  run_loose_flow(
      [](Sender& end) {
        Buffer memory(end, kDeathSize);
        memory.fill(0, kDeathSize, 1);
        end.send(memory.all()).finish();
        end.peer.send(kReceiverRank, true);
        wait_for_ever(end);
      },
      [](Receiver& end) {
        Buffer memory(end, kDeathWindow * kDeathSize);
        memory.expect(0, kDeathSize, 1);
        std::vector<Request> requests;
        for (size_t i = 0; i < kDeathWindow; ++i) {
          requests.push_back(end.receive(memory.part(i * kDeathSize, kDeathSize)));
        }
        end.peer.receive<bool>(kSenderRank);
        end.peer.kill(kSenderRank);
        must_be_noticed();  // before the first call of test
        requests[0].finish();
        BL_MUST(requests[0].size() == kDeathSize);
        BL_MUST(poll_until_error(requests[1]) == ncclRemoteError);
        for (Request& request : std::span(requests).subspan(1)) {
          for (int i = 0; i < 3; ++i) BL_MUST(request.try_poll() != ncclSuccess);
          BL_MUST(!request.is_done());
        }
        must_be_named();
        memory.must_hold();
      });
}

// NCCL tests such a receive once and then only waits for the data, without another call on that
// comm.
TEST_CASE("death: a receive that NCCL can do without fails, unless it was done early",
          "[contract][death]") {
  if (!kProcessesWork) return;
  const std::string early_done = GENERATE(as<std::string>{}, "0", "1");
  CAPTURE(early_done);
  const NoTimeouts unlimited;
  const Variable variable("BEELINE_EARLY_DONE", early_done.c_str());
  kill_one(
      kSenderRank, [](auto& end) { wait_for_ever(end); },
      [&](auto& end, const Part& part) {
        Request receive = irecv_optional(end.net(), end.comm, part);
        const bool is_done = receive.poll();
        BL_MUST(is_done == (early_done == "1"));
        end.peer.kill(kSenderRank);
        if (is_done) return must_be_noticed();
        BL_MUST(poll_until_error(receive) == ncclRemoteError);
        must_be_named();
      });
}

TEST_CASE("death: a peer that is stopped for long is waited for", "[contract][slow]") {
  if (!kProcessesWork) return;
  const size_t stopped = GENERATE(kSenderRank, kReceiverRank);
  CAPTURE(stopped);
  constexpr uint32_t kMessages = 400;
  const Variable timeout("BEELINE_PEER_TIMEOUT", "2s");
  // One end stops the other in the middle of its work, and continues it after three times as long.
  const auto play = [&](auto& end, auto&& move) {
    const pid_t other = end.peer.exchange(getpid());
    std::thread stopper;
    move(end, kDeathSize, kMessages, [&](uint32_t number) {
      if (number != kMessages / 2 || end.peer.rank() == stopped) return;
      stopper = std::thread([other] {
        BL_MUST(kill(other, SIGSTOP) == 0);
        std::this_thread::sleep_for(std::chrono::seconds(6));  // this time is the subject
        BL_MUST(kill(other, SIGCONT) == 0);
      });
    });
    if (stopper.joinable()) stopper.join();
    BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
  };
  run_flow([&](Sender& end) { play(end, send_messages); },
           [&](Receiver& end) { play(end, receive_messages); });
}
