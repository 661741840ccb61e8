// SPDX-License-Identifier: Apache-2.0
//
// A comm of which a path fails while data and grants are under way: both ends fence the path and
// exchange their reports, and every byte arrives over the other paths, once.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/component/device_rig.h"
#include "tests/component/resume_faults.h"
#include "tests/component/resume_traffic.h"
#include "tests/support/catch.h"

namespace beeline::test {
namespace {

// A receive that NCCL does not test: it looks at the data.
Request* receive_unseen(TransferRig& rig, Storage& into) {
  const ReceiveBuffer buffer = {
      .data = into.data(), .capacity = into.size(), .tag = 0, .memory = &into.handle()};
  Request* const request = must(irecv(rig.receiver(), {&buffer, 1}, Need::kNothing));
  if (request != nullptr) BL_MUST(must(test_once(*request, nullptr)));
  return request;
}

}  // namespace

// NCCL may make no further call, and the control thread has a timer for the later time.
TEST_CASE("resume: the control thread is told if a comm has to be served earlier",
          "[component][transfer][resume]") {
  FakeLink link;
  link.set_due(now_ns() + 5 * kNsPerSec);
  CHECK(link.services_asked == 1);
  link.set_due(now_ns() + kNsPerMs);
  CHECK(link.services_asked == 2);
  link.set_due(now_ns() + kNsPerSec);
  CHECK(link.services_asked == 2);
}

TEST_CASE("resume: every byte arrives although a path fails at any moment",
          "[component][transfer][resume]") {
  const auto paths = GENERATE(as<std::size_t>(), 2, 4);
  const auto notify = GENERATE(Notify::kImmediate, Notify::kNotice);
  const std::uint32_t seed = GENERATE(range(1U, 4U));
  CAPTURE(paths, notify, seed);
  TransferRig rig({.paths = paths, .notify = notify, .recovers = true});
  Traffic traffic(rig, seed);
  std::mt19937 random(seed);
  std::size_t left = paths;
  for (std::size_t path = random() % paths; left > 1; path = (path + 1) % paths, --left) {
    for (auto i = random() % 2000; i != 0; --i) traffic.step();
    const auto who = random() % 3;
    if (who != 0) break_path(rig.sender(), path);
    if (who != 1) break_path(rig.receiver(), path);
    for (auto i = random() % 500; i != 0; --i) traffic.step();
    rig.bring_messages();
  }
  traffic.finish();
  CHECK(traffic.finished() > 0);
}

// A driver may take a second to move a queue pair to ERROR.
TEST_CASE("resume: data moves by another path while one is being fenced",
          "[component][transfer][resume]") {
  constexpr std::size_t kSize = 4096;
  TransferRig rig({.paths = 2, .recovers = true});
  rig.sender_link().holds_fences = rig.receiver_link().holds_fences = true;
  Storage from = rig.storage(kSize, 0x55);
  Storage into = rig.storage(kSize);
  break_path(rig.sender(), 1);
  BL_MUST(rig.sender().probe_paths());  // so that it sees that
  for (int i = 0; i < 200; ++i) {
    Request* const receive = rig.receive(into, kSize, 0);
    rig.finish(rig.send(from, kSize, 0));
    rig.finish(receive);
  }
  CHECK_FALSE(rig.sender().is_up(1));
  REQUIRE(rig.sender_link().fences.size() == 1);
  CHECK(rig.sender_link().fences[0]->state() == FenceOrder::State::kWaits);
  CHECK(rig.sender_link().sent.empty());  // no report before the device has stopped
  rig.sender_link().fences[0]->carry_out();
  run_until(rig, [&] {
    rig.sender_link().serve_when_due();
    return !rig.sender_link().sent.empty();
  });
}

TEST_CASE("resume: a device that does not flush its receives is not waited for",
          "[component][transfer][resume]") {
  const int rc = GENERATE(0, EINVAL);
  CAPTURE(rc);
  TransferRig rig({.paths = 2, .recovers = true});
  const ForgottenReceives forgotten(rig.sender(), rc);
  Traffic traffic(rig, 1);
  for (int i = 0; i < 1000; ++i) traffic.step();
  break_path(rig.sender(), 0);
  break_path(rig.receiver(), 0);
  traffic.finish();
  CHECK(traffic.finished() > 0);
  CHECK(rig.sender_link().failure.empty());
  CHECK(rig.receiver_link().failure.empty());
}

// All paths of the comm may be down at times, and there may be only one.
TEST_CASE("resume: every byte arrives although paths fail again and again",
          "[component][transfer][resume]") {
  constexpr std::uint32_t kSeed = 1;
  const auto paths = GENERATE(as<std::size_t>(), 1, 2, 4);
  const auto notify = GENERATE(Notify::kImmediate, Notify::kNotice);
  CAPTURE(paths, notify);
  TransferRig rig({.paths = paths, .notify = notify, .recovers = true});
  Traffic traffic(rig, kSeed);
  std::mt19937 random(kSeed);
  for (int failures = 6; failures != 0; --failures) {
    for (auto i = random() % 2000; i != 0; --i) traffic.step();
    const auto who = random() % 3;
    const std::size_t path = random() % paths;
    if (who != 0) break_path(rig.sender(), path);
    if (who != 1) break_path(rig.receiver(), path);
    for (auto i = random() % 500; i != 0; --i) {
      traffic.step();
      if (random() % 64 == 0) rig.bring_messages();
    }
    rig.bring_messages();
  }
  traffic.finish();
  CHECK(traffic.finished() > 0);
  CHECK(rig.sender_link().failure.empty());
  CHECK(rig.receiver_link().failure.empty());
  const auto all_up = [paths](const Comm& comm) {
    for (std::size_t i = 0; i < paths; ++i) {
      if (!comm.is_up(i)) return false;
    }
    return true;
  };
  run_until(rig, [&] {
    rig.sender_link().serve();
    rig.receiver_link().serve();
    return all_up(rig.sender()) && all_up(rig.receiver());
  });
}

// The sender does not know yet that the receiver has given up a path. It announces a part of each
// message on the other path, and later, a second time, the part that the first path has lost.
TEST_CASE("resume: messages that are announced twice leave receives for the next ones",
          "[component][transfer][resume]") {
  constexpr std::size_t kSize = 600'000;  // both paths carry it
  constexpr int kLater = 100;             // more than the receives that are posted at a time
  const auto lost = GENERATE(as<std::size_t>(), 0, 1);
  CAPTURE(lost);
  TransferRig rig({.paths = 2, .recovers = true});
  Storage from = rig.storage(kSize, 0x55);
  Storage into = rig.storage(kSize);
  const auto finish = [&](Request* send, Request* receive) {
    run_until(rig, [&] {
      if (send != nullptr && must(test_once(*send, nullptr))) send = nullptr;
      if (receive != nullptr && must(test_once(*receive, nullptr))) receive = nullptr;
      return send == nullptr && receive == nullptr;
    });
  };
  const auto move_one = [&] {
    Request* const receive = rig.receive(into, kSize, 0);
    finish(rig.send(from, kSize, 0), receive);
  };
  move_one();  // posts receives, whose completions show that the path is broken
  break_path(rig.receiver(), lost);
  const auto deadline = Clock::now() + kPatience;
  while (rig.receiver_link().sent.empty()) {
    collect(rig.receiver());
    rig.receiver_link().serve();
    BL_MUST(Clock::now() < deadline);
  }
  std::array<std::pair<Request*, Request*>, 16> twice;
  for (auto& [send, receive] : twice) {
    receive = rig.receive(into, kSize, 0);
    send = rig.send(from, kSize, 0);
  }
  for (const auto& [send, receive] : twice) finish(send, receive);
  for (int i = 0; i < kLater; ++i) move_one();
  CHECK(is_equal(from, into));
}

TEST_CASE("resume: a comm whose only path is down waits for another queue pair",
          "[component][transfer][resume]") {
  constexpr std::size_t kSize = 200'000;
  TransferRig rig({.recovers = true});
  Storage from = rig.storage(kSize, 0x55);
  Storage into = rig.storage(kSize);
  rig.refuses_orders = true;
  Request* receive = rig.receive(into, kSize, 0);
  break_path(rig.sender(), 0);
  break_path(rig.receiver(), 0);
  Request* send = nullptr;
  // Neither end has an error, and neither finishes.
  for (const auto until = Clock::now() + std::chrono::milliseconds(300); Clock::now() < until;) {
    rig.bring_messages();
    if (send == nullptr) send = must(isend(rig.sender(), from, kSize, 0));
    if (send != nullptr) CHECK_FALSE(must(test_once(*send, nullptr)));
    CHECK_FALSE(must(test_once(*receive, nullptr)));
    const ReceiveBuffer buffer = {
        .data = into.data(), .capacity = kSize, .tag = 0, .memory = &into.handle()};
    if (!rig.receiver().is_up(0)) CHECK(must(irecv(rig.receiver(), {&buffer, 1})) == nullptr);
  }
  rig.refuses_orders = false;
  // The receiver has its queue pair, but the sender may still give up its own.
  run_until(rig, [&] {
    if (send == nullptr) send = must(isend(rig.sender(), from, kSize, 0));
    if (send != nullptr) CHECK_FALSE(must(test_once(*send, nullptr)));
    CHECK_FALSE(must(test_once(*receive, nullptr)));
    return rig.receiver().is_up(0);
  });
  const ReceiveBuffer another = {
      .data = into.data(), .capacity = kSize, .tag = 0, .memory = &into.handle()};
  CHECK(must(irecv(rig.receiver(), {&another, 1})) == nullptr);
  run_until(rig, [&] {
    if (send == nullptr) send = must(isend(rig.sender(), from, kSize, 0));
    if (send != nullptr && must(test_once(*send, nullptr))) send = nullptr;
    if (receive != nullptr && must(test_once(*receive, nullptr))) receive = nullptr;
    return receive == nullptr;
  });
  CHECK(is_equal(from, into));
}

// A device that has refused the fence may complete requests later, when their slots are in use
// again.
TEST_CASE("resume: what completes after the report does not count",
          "[component][transfer][resume]") {
  TransferRig rig({.paths = 2, .recovers = true});
  rig.refuses_orders = true;
  Storage from = rig.storage(kLargest, 0x77);
  Storage into = rig.storage(kLargest);
  const ibv_cq* const late = rig.sender().paths()[1].resources->queues.cq.get();
  const ibv_cq* const other = rig.sender().paths()[0].resources->queues.cq.get();
  std::vector<ibv_wc> held;
  bool is_late = false;
  const PollHook hook(rig.sender(), [&](ibv_cq* cq, int room, ibv_wc* found) {
    if (is_late && cq == other) return 0;
    if (is_late && cq == late && !held.empty()) {
      *found = held.back();
      held.pop_back();
      return 1;
    }
    const int count = PollHook::real(cq, room, found);
    if (cq != late) return count;
    const auto is_success = [](const ibv_wc& one) { return one.status == IBV_WC_SUCCESS; };
    std::copy_if(found, found + count, std::back_inserter(held), is_success);
    return static_cast<int>(std::remove_if(found, found + count, is_success) - found);
  });
  Request* receive = rig.receive(into, kLargest, 0);
  Request* const last = rig.receive(into, kLargest, 0);
  Request* send = rig.send(from, kLargest, 0);
  while (held.empty()) CHECK_FALSE(must(test_once(*send, nullptr)));
  break_path(rig.sender(), 1);
  break_path(rig.receiver(), 1);
  run_until(rig, [&] {
    if (send != nullptr && must(test_once(*send, nullptr))) send = nullptr;
    if (receive != nullptr && must(test_once(*receive, nullptr))) receive = nullptr;
    CHECK_FALSE(must(test_once(*last, nullptr)));
    return send == nullptr && receive == nullptr && !rig.sender().is_up(1);
  });
  send = rig.send(from, kLargest, 0);
  const auto missing = send->missing;
  is_late = true;
  while (!held.empty()) collect(rig.sender());
  CHECK(send->missing == missing);
  is_late = false;
  rig.finish(send);
  rig.finish(last);
  CHECK(is_equal(from, into));
}

TEST_CASE("resume: a message that only a lost device could carry is an error",
          "[component][transfer][resume]") {
  const bool is_under_way = GENERATE(true, false);
  CAPTURE(is_under_way);
  TransferRig rig({.paths = 2, .recovers = true});
  rig.refuses_orders = true;
  Storage from = rig.storage(kLargest, 0x11);
  Storage into = rig.storage(kLargest);
  from.leave_out(0);
  Request* const receive = rig.receive(into, kLargest, 0);
  Request* send = nullptr;
  break_path(rig.receiver(), 1);
  if (is_under_way) send = rig.send(from, kLargest, 0);
  break_path(rig.sender(), 1);
  while (rig.sender().is_up(1) || rig.sender().gate().is_raised()) {
    rig.bring_messages();
    (void)rig.sender_link().serve();
    if (send != nullptr) CHECK_FALSE(must(test_once(*send, nullptr)));
    CHECK_FALSE(must(test_once(*receive, nullptr)));
  }
  if (!is_under_way) CHECK(must(isend(rig.sender(), from, kLargest, 0)) == nullptr);
  CHECK(rig.sender().lose_device_of(rig.sender().paths()[1]));
  CHECK_FALSE(isend(rig.sender(), from, kLargest, 0));
  if (send != nullptr) CHECK_FALSE(test_once(*send, nullptr));
  CHECK_FALSE(rig.sender_link().failure.empty());
}

// It may retry for ever, or be broken.
TEST_CASE("resume: an only path whose device reports nothing is made anew in the end",
          "[component][transfer][resume]") {
  constexpr std::chrono::milliseconds kStallTimeout{400};
  TransferRig rig({.stall_ns = std::chrono::nanoseconds{kStallTimeout}.count(), .recovers = true});
  Storage from = rig.storage(kLargest, 0x66);
  Storage into = rig.storage(kLargest);
  const ibv_cq* const mute = rig.sender().paths()[0].resources->queues.cq.get();
  const PollHook hook(rig.sender(), [mute](ibv_cq* cq, int room, ibv_wc* found) {
    return cq == mute ? 0 : PollHook::real(cq, room, found);
  });
  Request* receive = rig.receive(into, kLargest, 0);
  const auto begun = Clock::now();
  Request* send = rig.send(from, kLargest, 0);
  run_until(rig, [&] {
    if (send != nullptr && must(test_once(*send, nullptr))) send = nullptr;
    if (receive != nullptr && must(test_once(*receive, nullptr))) receive = nullptr;
    if (receive == nullptr) (void)rig.receiver_link().serve();  // as the control thread does
    return send == nullptr && receive == nullptr;
  });
  CHECK(Clock::now() - begun >= kStallTimeout);  // a slow path is not a failed one
  CHECK(is_equal(from, into));
  CHECK(rig.sender_link().failure.empty());
}

// The sender's device has given up waiting for acknowledgements of data that has arrived, and the
// receiver has not polled since.
TEST_CASE("resume: what has arrived is not sent again", "[component][transfer][resume]") {
  const auto notify = GENERATE(Notify::kImmediate, Notify::kNotice);
  const auto size = GENERATE(as<std::size_t>(), 8, kLargest);
  CAPTURE(notify, size);
  TransferRig rig({.paths = 2, .notify = notify, .recovers = true});
  Storage from = rig.storage(size, 0x33);
  Storage into = rig.storage(size);
  const PollHook loss(rig.sender(), without_acks(rig.sender(), 0));  // which carries short messages
  std::array<Request*, 4> sends = {};
  std::array<Request*, 4> receives = {};
  for (Request*& receive : receives) receive = rig.receive(into, size, 0);
  for (Request*& send : sends) send = rig.send(from, size, 0);
  const auto test_all = [](std::span<Request*> requests) {
    for (Request*& request : requests) {
      if (request != nullptr && must(test_once(*request, nullptr))) request = nullptr;
    }
  };
  const auto deadline = Clock::now() + kPatience;
  while (rig.sender_link().sent.empty()) {
    test_all(sends);
    BL_MUST(Clock::now() < deadline);
  }
  // Of the receiver's calls, only test() polls before anything else. The receive stays, so that the
  // receiver has something to test.
  rig.bring_messages();
  Request* const last = rig.receive(into, size, 0);
  run_until(rig, [&] {
    test_all(sends);
    test_all(receives);
    return std::ranges::count(sends, nullptr) == std::ssize(sends);
  });
  rig.finish(rig.send(from, size, 0));
  rig.finish(last);
  CHECK(is_equal(from, into));
  CHECK(rig.receiver_link().failure.empty());
}

// The path is left after its device has acknowledged the first chunks of a message and before their
// notice is posted. So the receiver does not know of them.
TEST_CASE("resume: chunks without a notice are sent again", "[component][transfer][resume]") {
  constexpr std::size_t kLong = 4 * kLargest;  // its last chunks have to wait
  TransferRig rig({.paths = 2, .recovers = true});
  Storage from = rig.storage(kLong, 0x55);
  Storage into = rig.storage(kLong);
  Request* const receive = rig.receive(into, kLong, 0);
  Request* const send = rig.send(from, kLong, 0);
  rig.sender().set_state(rig.sender().paths()[1], PathState::kFencing);
  const auto has_work = [&](std::size_t path) {
    return rig.sender().has_sends_under_way(rig.sender().paths()[path]);
  };
  run_until(rig, [&] { return !has_work(0) && !has_work(1); });
  CHECK_FALSE(must(test_once(*send, nullptr)));

  break_path(rig.receiver(), 1);
  bool is_sent = false;
  bool is_received = false;
  run_until(rig, [&] {
    is_sent = is_sent || must(test_once(*send, nullptr));
    is_received = is_received || must(test_once(*receive, nullptr));
    return is_sent && is_received;
  });
  CHECK(is_equal(from, into));
}

bool names_finished(const std::deque<PathMessage>& messages) {
  return std::ranges::any_of(messages, [](const PathMessage& one) {
    const auto* const fenced = std::get_if<wire::Fenced>(&one);
    return fenced != nullptr && !fenced->finished.empty();
  });
}

// The receiver's completions of the path that fails are lost, or those of the other path come late.
TEST_CASE("resume: data that was acknowledged and does not come is an error",
          "[component][transfer][resume]") {
  const bool is_lost = GENERATE(true, false);
  CAPTURE(is_lost);
  TransferRig rig({.paths = 2, .recovers = true});
  rig.refuses_orders = true;  // the path stays out of use
  Storage from = rig.storage(kLargest, 0x44);
  Storage into = rig.storage(kLargest);
  const ibv_cq* mute = rig.receiver().paths()[is_lost ? 1 : 0].resources->queues.cq.get();
  const PollHook hook(rig.sender(), [&mute](ibv_cq* cq, int room, ibv_wc* found) {
    return cq == mute ? 0 : PollHook::real(cq, room, found);
  });
  Request* const receive = rig.receive(into, kLargest, 0);
  rig.finish(rig.send(from, kLargest, 0));
  break_path(rig.sender(), 1);
  BL_MUST(rig.sender().probe_paths());  // so that it sees that

  bool is_told = false;
  wire::Fenced report;  // of the receiver
  Result<bool> done = false;
  run_until(rig, [&] {
    rig.sender_link().serve_when_due();
    rig.receiver_link().serve_when_due();
    is_told = is_told || names_finished(rig.sender_link().sent);
    if (is_told && !is_lost) mute = nullptr;
    done = test_once(*receive, nullptr);
    for (const PathMessage& message : rig.receiver_link().sent) {
      if (const auto* const fenced = std::get_if<wire::Fenced>(&message)) report = *fenced;
    }
    return !done || *done;
  });
  CHECK(is_told);
  // The sender says it whenever it says FENCED again, which is what a channel repeats that was
  // lost. It does not answer while the path is being made.
  REQUIRE(report.path == 1);
  report.has_peer_report = false;
  report.serial = 0;  // so that none is taken for a copy
  run_until(rig, [&] {
    rig.sender_link().bring(report);
    rig.sender_link().serve_when_due();
    return names_finished(rig.sender_link().sent);
  });
  CHECK(static_cast<bool>(done) == !is_lost);
  CHECK(rig.receiver_link().failure.empty() == !is_lost);
  if (!is_lost) CHECK(is_equal(from, into));
}

// The receiver has got everything before the path fails, and NCCL does not call it any more.
TEST_CASE("resume: an end that NCCL does not call is served by the control thread",
          "[component][transfer][resume]") {
  constexpr std::size_t kSize = 8;
  TransferRig rig({.paths = 2, .recovers = true});
  Storage from = rig.storage(kSize, 0x33);
  Storage into = rig.storage(kSize);
  const PollHook loss(rig.sender(), without_acks(rig.sender(), 1));
  std::array<Request*, 4> sends = {};
  std::array<Request*, 4> receives = {};
  for (Request*& receive : receives) receive = rig.receive(into, kSize, 0);
  for (Request*& send : sends) send = rig.send(from, kSize, 0);
  CHECK(rig.receiver_link().serve());  // nothing is the matter
  for (Request* const receive : receives) rig.finish(receive);
  run_until(rig, [&] {
    for (Request*& send : sends) {
      if (send != nullptr && must(test_once(*send, nullptr))) send = nullptr;
    }
    rig.receiver_link().serve();
    return std::ranges::count(sends, nullptr) == std::ssize(sends);
  });
  run_until(rig, [&] { return rig.receiver_link().serve(); });
  Request* const receive = rig.receive(into, kSize, 0);
  rig.receiver().gate().raise_alarm();
  CHECK_FALSE(rig.receiver_link().serve());  // it is in use
  rig.finish(rig.send(from, kSize, 0));
  rig.finish(receive);
  CHECK(rig.receiver_link().failure.empty());
}

// The receiver moves its queue pair to ERROR in the middle of a message.
TEST_CASE("resume: an error that the peer's report explains is none of a program",
          "[component][transfer][resume]") {
  TransferRig rig({.paths = 2, .recovers = true});
  Storage from = rig.storage(kLargest, 0x44);
  Storage into = rig.storage(kLargest);
  const PollHook loss(rig.sender(), without_acks(rig.sender(), 1, IBV_WC_REM_OP_ERR));
  Request* receive = rig.receive(into, kLargest, 0);
  Request* const last = rig.receive(into, kLargest, 0);
  Request* send = rig.send(from, kLargest, 0);
  while (!rig.sender().gate().is_raised()) must(test_once(*send, nullptr));
  CHECK(rig.sender_link().sent.empty());  // it may be a fault of a program
  break_path(rig.receiver(), 1);
  run_until(rig, [&] {
    if (send != nullptr && must(test_once(*send, nullptr))) send = nullptr;
    if (receive != nullptr && must(test_once(*receive, nullptr))) receive = nullptr;
    CHECK_FALSE(must(test_once(*last, nullptr)));  // NCCL asks for all that is under way
    return send == nullptr && receive == nullptr;
  });
  rig.finish(rig.send(from, kLargest, 0));
  rig.finish(last);
  CHECK(is_equal(from, into));
  CHECK_FALSE(rig.sender().gate().is_raised());
  CHECK(rig.sender_link().failure.empty());
}

// The data of an optional receive has arrived, its notice on one path is lost with the path, and
// NCCL, which has seen the data, grants the buffer again.
TEST_CASE("resume: a buffer that was granted again is not overwritten with old data",
          "[component][transfer][resume]") {
  const bool is_granted_before_report = GENERATE(true, false);
  CAPTURE(is_granted_before_report);
  TransferRig rig({.paths = 2, .recovers = true});
  Storage first = rig.storage(kLargest, 0x11);
  Storage second = rig.storage(kLargest, 0x22);
  Storage last = rig.storage(8);
  Storage into = rig.storage(kLargest);
  Storage last_into = rig.storage(8);
  BL_MUST(receive_unseen(rig, into) != nullptr);
  Request* send = nullptr;
  {
    const NoticeLoss loss(rig.sender(), 1);
    send = rig.send(first, kLargest, 0);
    run_until(rig, [&] { return is_equal(first, into); });
  }
  if (is_granted_before_report) BL_MUST(receive_unseen(rig, into) != nullptr);
  break_path(rig.sender(), 1);
  break_path(rig.receiver(), 1);
  const auto test_send = [&] {
    if (send != nullptr && must(test_once(*send, nullptr))) send = nullptr;
  };
  if (!is_granted_before_report) {
    std::uint32_t refusals = 0;
    collect(rig.receiver());
    run_until(rig, [&] {
      test_send();
      if (receive_unseen(rig, into) != nullptr) return true;
      ++refusals;
      return false;
    });
    CHECK(refusals > 0);
  }

  Request* receive = rig.receive(last_into, last_into.size(), 0);
  std::vector<Storage*> to_send = {&last, &second};
  run_until(rig, [&] {
    test_send();
    if (send == nullptr && !to_send.empty()) {
      send = must(isend(rig.sender(), *to_send.back(), to_send.back()->size(), 0));
      if (send != nullptr) to_send.pop_back();
    }
    if (receive != nullptr && must(test_once(*receive, nullptr))) receive = nullptr;
    return receive == nullptr && send == nullptr && to_send.empty();
  });
  CHECK(is_equal(second, into));
  for (std::uint32_t i = 0; i < wire::kMaxLines; ++i) {
    Request* const another = rig.receive(last_into, last_into.size(), 0);
    rig.finish(rig.send(last, last.size(), 0));
    rig.finish(another);
  }
  CHECK(rig.receiver_link().failure.empty());
  CHECK(rig.sender_link().failure.empty());
}

}  // namespace beeline::test
