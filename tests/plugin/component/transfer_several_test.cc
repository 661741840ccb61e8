// SPDX-License-Identifier: Apache-2.0
//
// A comm with several paths: every byte arrives, whichever paths carry it.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/plugin/component/device_rig.h"
#include "tests/plugin/component/transfer_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

namespace beeline::test {
namespace {

void fill(Storage& storage, unsigned seed) {
  std::minstd_rand random(seed);
  std::generate_n(storage.data(), storage.size(),
                  [&] { return static_cast<unsigned char>(random() >> 8); });
}

// Bytes that arrived by each path.
std::vector<std::uint64_t> arrived_by_path(RecvComm& receiver) {
  std::vector<std::uint64_t> bytes;
  for (std::size_t i = 0; i < receiver.paths().size(); ++i) {
    bytes.push_back(receiver.bytes_of_path(i));
  }
  return bytes;
}

// Counts calls of ibv_post_send. There can be only one at a time.
class PostCounter {
 public:
  explicit PostCounter(const Comm& comm) : context_(comm.paths()[0].resources->queues.qp->context) {
    count_ = 0;
    real_ = std::exchange(context_->ops.post_send, &call);
  }
  PostCounter(const PostCounter&) = delete;
  PostCounter& operator=(const PostCounter&) = delete;
  ~PostCounter() { context_->ops.post_send = real_; }

  int count() const { return count_; }

 private:
  static int call(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** refused) {
    ++count_;
    return real_(qp, work, refused);
  }

  ibv_context* context_;
  static inline int count_ = 0;
  static inline int (*real_)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
};

struct Moved {
  Request* receive;
  Request* send;
};

// Both requests are tested in turn, since the sender assigns chunks while it is tested.
void finish_both(Moved moved, int size) {
  bool sent = false;
  bool received = false;
  int sent_size = 0;
  int received_size = 0;
  const auto deadline = Clock::now() + kPatience;
  while (!sent || !received) {
    if (!sent) sent = must(test_once(*moved.send, &sent_size));
    if (!received) received = must(test_once(*moved.receive, &received_size));
    BL_MUST(Clock::now() < deadline);
  }
  CHECK(sent_size == size);
  CHECK(received_size == size);
}

}  // namespace

TEST_CASE(
    "several: a message for a receive that nobody waits for counts for the path that carried it",
    "[component][transfer][several]") {
  TransferRig rig({.paths = 2});
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64, 0);
  const ReceiveBuffer buffer = {
      .data = into.data(), .capacity = 64, .tag = 0, .memory = &into.handle()};
  const auto receive = irecv(rig.receiver(), {&buffer, 1}, Need::kNothing);
  REQUIRE(receive);
  REQUIRE(*receive != nullptr);
  CHECK(*test_once(**receive, nullptr));
  rig.finish(rig.send(from, 64, 0));
  collect(rig.receiver());
  CHECK(into.data()[63] == 0x5a);
  CHECK(rig.receiver().bytes_of_path(0) + rig.receiver().bytes_of_path(1) == 64);
}

namespace {

// Carries short messages, one at a time, and returns by how many paths they have arrived.
std::ptrdiff_t paths_of_short_messages(TransferRig& rig, int messages) {
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  const std::vector<std::uint64_t> before = arrived_by_path(rig.receiver());
  for (int i = 0; i < messages; ++i) {
    Request* const receive = rig.receive(into, 64, 0);
    finish_both({receive, rig.send(from, 64, 0)}, 64);
  }
  const std::vector<std::uint64_t> after = arrived_by_path(rig.receiver());
  std::ptrdiff_t count = 0;
  for (std::size_t i = 0; i < after.size(); ++i) count += after[i] != before[i] ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("several: short messages stay on a path for a while", "[component][transfer][several]") {
  TransferRig rig({.paths = 4});
  CHECK(paths_of_short_messages(rig, 40) == 1);
  CHECK(paths_of_short_messages(rig, 300) > 1);
}

TEST_CASE("several: short messages leave a path on which many are under way",
          "[component][transfer][several]") {
  constexpr std::size_t kMessages = 24;
  TransferRig rig({.paths = 2});
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  std::vector<Request*> requests;
  requests.reserve(2 * kMessages);
  for (std::size_t i = 0; i < kMessages; ++i) requests.push_back(rig.receive(into, 64, 0));
  for (std::size_t i = 0; i < kMessages; ++i) requests.push_back(rig.send(from, 64, 0));
  CHECK(rig.sender().has_sends_under_way(rig.sender().paths()[0]));
  CHECK(rig.sender().has_sends_under_way(rig.sender().paths()[1]));
  for (Request* request : requests) rig.finish(request);
}

TEST_CASE("several: a short message leaves a path that cannot carry its buffer",
          "[component][transfer][several]") {
  const bool at_sender = GENERATE(false, true);
  TransferRig rig({.paths = 2});
  CHECK(paths_of_short_messages(rig, 1) == 1);
  const auto first = rig.receiver().bytes_of_path(0) != 0 ? std::size_t{0} : std::size_t{1};
  Storage from = rig.storage(64, 0x33);
  Storage into = rig.storage(64);
  (at_sender ? from : into).leave_out(first);
  Request* const receive = rig.receive(into, 64, 0);
  finish_both({receive, rig.send(from, 64, 0)}, 64);
  CHECK(is_equal(from, into, 64));
  CHECK(rig.receiver().bytes_of_path(1 - first) == 64);
}

TEST_CASE("several: a message that no pair of rails can carry ends the comm and says why",
          "[component][transfer][several]") {
  TransferRig rig({.paths = 2});
  Storage from = rig.storage(64);
  Storage into = rig.storage(64);
  from.leave_out(0);
  into.leave_out(1);
  rig.receive(into, 64, 0);
  const LogCapture log;
  Result<Request*> send = nullptr;
  const auto deadline = Clock::now() + kPatience;
  while (send && *send == nullptr && Clock::now() < deadline) {
    send = isend(rig.sender(), from, 64, 0);
  }
  REQUIRE_FALSE(send);
  CHECK(log.count("no pair of rails has registered both buffers") == 1);
}

// The memory for notices was made for more paths. With too many receives posted, notices would
// overwrite each other before they are read.
TEST_CASE("several: as many receives as fit are in flight where paths are missing",
          "[component][transfer][several]") {
  const auto paths = GENERATE(as<std::size_t>(), 1, 2);
  const auto missing = GENERATE(as<std::size_t>(), 4, 6);
  CAPTURE(paths, missing);
  TransferRig rig({.paths = paths, .missing_paths = missing, .notify = Notify::kNotice});
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  std::vector<Request*> receives;
  for (;;) {
    const ReceiveBuffer one = {
        .data = into.data(), .capacity = 64, .tag = 0, .memory = &into.handle()};
    const Result<Request*> made = irecv(rig.receiver(), {&one, 1}, Need::kNothing);
    REQUIRE(made);
    if (*made == nullptr) break;
    receives.push_back(*made);
    REQUIRE(must(test_once(*receives.back(), nullptr)));
  }
  CHECK(receives.size() >= 64);
  CHECK(receives.size() <= (paths == 1 ? wire::kMaxLines : 96));
  for (std::size_t i = 0; i < receives.size(); ++i) rig.finish(rig.send(from, 64, 0));
  collect(rig.receiver());  // reads all the notices
  Request* const last = rig.receive(into, 64, 0);
  finish_both({last, rig.send(from, 64, 0)}, 64);
}

// After a failure, the sender announces what it sends again on paths that may have announced other
// parts of the message. With eight paths, the receive queues limit how many buffers are in flight.
TEST_CASE("several: messages that may be announced twice have two receives each",
          "[component][transfer][several]") {
  TransferRig rig({.paths = 8});
  Storage into = rig.storage(64);
  RecvComm& receiver = rig.receiver();
  std::vector<ReceiveBuffer> group;
  group.reserve(wire::kMaxReceives);
  for (int tag = 0; tag < static_cast<int>(wire::kMaxReceives); ++tag)
    group.push_back({.data = into.data(), .capacity = 64, .tag = tag, .memory = &into.handle()});
  std::size_t granted = group.size();
  BL_MUST(must(irecv(receiver, group)) != nullptr);
  receiver.gate().enter();  // as a call does
  REQUIRE(receiver.take_report());
  receiver.gate().leave();
  while (must(irecv(receiver, group)) != nullptr) granted += group.size();
  std::size_t least = 2 * wire::kMaxLines;
  for (const Path& path : receiver.paths())
    least = std::min<std::size_t>(least, path.posted_receives);
  REQUIRE(least < 2 * wire::kMaxLines);
  CHECK(least >= 2 * granted);
  CHECK(least < 2 * (granted + group.size()));  // as many as may be
}

// NCCL keeps at most 128 buffers in flight on one comm: decision 0019. All their messages are under
// way at once here, and each path could have to carry all of them.
TEST_CASE("several: 128 buffers are in flight, or at least 64 with more than four paths",
          "[component][transfer][several]") {
  constexpr std::size_t kBuffers = wire::kMaxReceives;
  constexpr std::size_t kGroups = 40;
  constexpr std::size_t kEach = 64;
  const auto paths = GENERATE(as<std::size_t>(), 1, 2, 4, 5, 8);
  CAPTURE(paths);
  TransferRig rig({.paths = paths, .notify = Notify::kNotice});
  Storage from = rig.storage(kGroups * kBuffers * kEach);
  Storage into = rig.storage(kGroups * kBuffers * kEach);
  fill(from, 6);
  const auto receive_group = [&](std::size_t group) {
    std::vector<ReceiveBuffer> buffers;
    for (std::size_t i = 0; i < kBuffers; ++i) {
      buffers.push_back({.data = into.data() + (group * kBuffers + i) * kEach,
                         .capacity = kEach,
                         .tag = static_cast<int>(i),
                         .memory = &into.handle()});
    }
    return must(irecv(rig.receiver(), buffers));
  };
  std::size_t most = 0;
  for (std::size_t first = 0; first < kGroups;) {
    std::vector<Request*> receives;
    while (first + receives.size() < kGroups) {
      Request* const made = receive_group(first + receives.size());
      if (made == nullptr) break;
      receives.push_back(made);
    }
    const std::size_t in_flight = receives.size() * kBuffers;
    most = std::max(most, in_flight);
    std::vector<Request*> sends;
    for (std::size_t i = 0; i < in_flight; ++i) {
      const std::size_t at = (first * kBuffers + i) * kEach;
      sends.push_back(rig.send(from, kEach, static_cast<int>(i % kBuffers), at));
    }
    for (Request* const send : sends) rig.finish(send);
    for (Request* const receive : receives) rig.finish_all(receive, kBuffers);
    first += receives.size();
  }
  CHECK(is_equal(from, into, into.size()));
  if (paths <= 4) {
    CHECK(most == wire::kMaxLines);
  } else {
    CHECK(most >= 64);
  }
}

// NCCL deregisters memory before it closes a comm that it aborts. Sanitizers see a use of the
// handle.
TEST_CASE("several: closing sends no more chunks", "[component][transfer][several]") {
  constexpr std::size_t kHuge = 32 << 20;  // more than the paths take at once
  TransferRig rig({.paths = 2});
  Storage into = rig.storage(kHuge);
  {
    Storage from = rig.storage(kHuge, 0x5a);
    rig.receive(into, kHuge, 0);
    rig.send(from, kHuge, 0);
    const volatile unsigned char* const first = into.data();
    const auto deadline = Clock::now() + kPatience;
    while (*first != 0x5a) BL_MUST(Clock::now() < deadline);  // the device makes progress
  }
  const PostCounter posts(rig.sender());
  rig.close_sender();
  CHECK(posts.count() == 0);
  CHECK(rig.sender_link().said == 0);
}

TEST_CASE("several: a message waits if no path has room for a part of it",
          "[component][transfer][several]") {
  constexpr std::size_t kSmall = 8192;  // two writes and a notice
  constexpr std::size_t kSmalls = wire::kMaxGroups - 1;
  constexpr std::size_t kLongest = 1 << 19;
  TransferRig rig({.paths = 2, .notify = Notify::kNotice, .largest_write = kSmall / 2});
  Storage from = rig.storage(kSmall);
  Storage into = rig.storage(kSmalls * kSmall);
  Storage long_from = rig.storage(kLongest);
  Storage long_into = rig.storage(kLongest);
  fill(long_from, 5);
  std::vector<Moved> all;
  for (std::size_t i = 0; i < kSmalls; ++i) {
    Request* const receive = rig.receive(into, kSmall, 0, i * kSmall);
    all.push_back({receive, rig.send(from, kSmall, 0)});
  }
  Request* const receive = rig.receive(long_into, kLongest, 0);
  Request* const send = rig.send(long_from, kLongest, 0);
  for (const Moved& moved : all) finish_both(moved, kSmall);
  finish_both({receive, send}, kLongest);
  CHECK(is_equal(long_from, long_into, kLongest));
}

TEST_CASE("several: messages in flight finish in any order of tests",
          "[component][transfer][several]") {
  constexpr std::size_t kMessages = 40;  // more than can be split at a time
  constexpr std::size_t kEach = 300'000;
  TransferRig rig({.paths = 3});
  Storage from = rig.storage(kMessages * kEach);
  Storage into = rig.storage(kMessages * kEach);
  fill(from, 4);
  std::vector<Request*> requests;
  std::size_t received = 0;
  std::size_t sent = 0;
  const auto deadline = Clock::now() + kPatience;
  std::size_t done = 0;
  while (done < 2 * kMessages) {
    BL_MUST(Clock::now() < deadline);
    if (received < kMessages) {
      const ReceiveBuffer one = {.data = into.data() + received * kEach,
                                 .capacity = kEach,
                                 .tag = 0,
                                 .memory = &into.handle()};
      if (Request* const made = must(irecv(rig.receiver(), {&one, 1}))) {
        requests.push_back(made);
        ++received;
      }
    }
    if (sent < kMessages) {
      if (Request* const made = must(isend(rig.sender(), from, kEach, 0, sent * kEach))) {
        requests.push_back(made);
        ++sent;
      }
    }
    // The newest first.
    for (std::size_t i = requests.size(); i-- > 0;) {
      int size = 0;
      if (!must(test_once(*requests[i], &size))) continue;
      CHECK(size == static_cast<int>(kEach));
      requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(i));
      ++done;
    }
  }
  CHECK(is_equal(from, into, kMessages * kEach));
}

}  // namespace beeline::test
