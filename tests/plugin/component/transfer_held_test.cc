// SPDX-License-Identifier: Apache-2.0
//
// Sends for an irecv of several buffers: they are posted together, but none of them waits for
// longer than until the next test.
#include <array>
#include <cstdint>
#include <vector>

#include "tests/plugin/component/transfer_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

namespace beeline::test {
namespace {

// Counts of what the sender's device has been told to do since WatchedDevice::seen() was called.
struct Posted {
  int calls = 0;
  int requests = 0;
  int signaled = 0;

  friend bool operator==(const Posted&, const Posted&) = default;
};

// While it exists, it counts what the device is given, which may be told to refuse it.
class WatchedDevice {
 public:
  explicit WatchedDevice(TransferRig& rig)
      : context_(rig.sender().paths()[0].resources->queues.cq->context),
        real_(context_->ops.post_send) {
    now = this;
    context_->ops.post_send = [](ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** refused) {
      ++now->posted_.calls;
      for (const ibv_send_wr* wr = first; wr != nullptr; wr = wr->next) {
        ++now->posted_.requests;
        if ((wr->send_flags & IBV_SEND_SIGNALED) != 0) ++now->posted_.signaled;
      }
      *refused = first;
      return now->refuses ? ENOMEM : now->real_(qp, first, refused);
    };
  }
  ~WatchedDevice() { context_->ops.post_send = real_; }
  WatchedDevice(const WatchedDevice&) = delete;
  WatchedDevice& operator=(const WatchedDevice&) = delete;

  Posted seen() { return std::exchange(posted_, {}); }
  bool refuses = false;

 private:
  static inline WatchedDevice* now = nullptr;
  ibv_context* context_;
  decltype(ibv_context_ops::post_send) real_;
  Posted posted_;
};

constexpr std::size_t kSlice = 64;

// One irecv of as many buffers, with the tags 100, 101 and so on.
Request* receive_group(TransferRig& rig, Storage& into, std::size_t count) {
  std::vector<ReceiveBuffer> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    buffers.push_back({.data = into.data() + i * kSlice,
                       .capacity = kSlice,
                       .tag = 100 + static_cast<int>(i),
                       .memory = &into.handle()});
  }
  const auto request = irecv(rig.receiver(), buffers);
  REQUIRE(request);
  REQUIRE(*request != nullptr);
  return *request;
}

Request* send_one(TransferRig& rig, Storage& from, std::size_t i) {
  const auto request = isend(rig.sender(), from, kSlice, 100 + static_cast<int>(i), i * kSlice);
  REQUIRE(request);
  REQUIRE(*request != nullptr);
  return *request;
}

Storage numbered(TransferRig& rig, std::size_t count) {
  Storage storage = rig.storage(count * kSlice, 0);
  for (std::size_t i = 0; i < storage.size(); ++i) {
    storage.data()[i] = static_cast<unsigned char>(1 + i / kSlice);
  }
  return storage;
}

TEST_CASE("held: the sends of a group are posted together, and complete together",
          "[component][transfer]") {
  TransferRig rig;
  Storage from = numbered(rig, 8);
  Storage into = rig.storage(8 * kSlice, 0xee);
  const auto order = GENERATE(std::array<std::size_t, 8>{0, 1, 2, 3, 4, 5, 6, 7},
                              std::array<std::size_t, 8>{3, 0, 1, 2, 7, 6, 5, 4});
  Request* const receive = receive_group(rig, into, 8);
  WatchedDevice device(rig);
  std::vector<Request*> sends;
  for (const std::size_t i : order) {
    CHECK(device.seen() == Posted{});
    sends.push_back(send_one(rig, from, i));
  }
  CHECK(device.seen() == Posted{.calls = 1, .requests = 8, .signaled = 1});
  CHECK(rig.finish_all(receive, 8) == std::vector<int>(8, kSlice));
  CHECK(is_equal(from, into, into.size()));
  rig.finish(sends.front());
  for (std::size_t i = 1; i < sends.size(); ++i) CHECK(sends[i]->missing == 0);
}

TEST_CASE("held: a test posts what is held of a group that is not complete",
          "[component][transfer]") {
  TransferRig rig;
  Storage from = numbered(rig, 4);
  Storage into = rig.storage(4 * kSlice, 0xee);
  Request* const receive = receive_group(rig, into, 4);
  WatchedDevice device(rig);
  std::vector<Request*> sends = {send_one(rig, from, 0), send_one(rig, from, 1)};
  REQUIRE(device.seen() == Posted{});
  rig.finish(sends[1]);
  CHECK(device.seen() == Posted{.calls = 1, .requests = 2, .signaled = 1});
  rig.finish(sends[0]);
  sends = {send_one(rig, from, 2), send_one(rig, from, 3)};
  CHECK(device.seen() == Posted{.calls = 1, .requests = 2, .signaled = 1});
  CHECK(rig.finish_all(receive, 4) == std::vector<int>(4, kSlice));
  CHECK(is_equal(from, into, into.size()));
}

TEST_CASE("held: groups of all sizes and single messages follow each other",
          "[component][transfer]") {
  TransferRig rig;
  Storage from = numbered(rig, 8);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t count = 1; count <= 8; ++count) {
      Storage into = rig.storage(8 * kSlice, 0xee);
      Request* const receive = receive_group(rig, into, count);
      WatchedDevice device(rig);
      std::vector<Request*> sends;
      for (std::size_t i = 0; i < count; ++i) sends.push_back(send_one(rig, from, i));
      CHECK(device.seen() ==
            Posted{.calls = 1, .requests = static_cast<int>(count), .signaled = 1});
      CHECK(rig.finish_all(receive, count) == std::vector<int>(count, kSlice));
      for (Request* const send : sends) CHECK(rig.finish(send) == kSlice);
      CHECK(std::equal(from.data(), from.data() + count * kSlice, into.data()));
    }
  }
}

TEST_CASE("held: a message without bytes in a group is posted at once", "[component][transfer]") {
  TransferRig rig;
  Storage from = numbered(rig, 3);
  Storage into = rig.storage(3 * kSlice, 0xee);
  Request* const receive = receive_group(rig, into, 3);
  Request* const first = send_one(rig, from, 0);
  const auto empty = isend(rig.sender(), from, 0, 101);
  REQUIRE(empty);
  REQUIRE(*empty != nullptr);
  Request* const last = send_one(rig, from, 2);
  CHECK(rig.finish_all(receive, 3) == std::vector<int>{kSlice, 0, kSlice});
  for (Request* const send : {first, *empty, last}) rig.finish(send);
  CHECK(into.data()[0] == 1);
  CHECK(into.data()[kSlice] == 0xee);
  CHECK(into.data()[2 * kSlice] == 3);
}

TEST_CASE("held: if the device refuses a group, the comm fails", "[component][transfer]") {
  TransferRig rig;
  const LogCapture log;
  Storage from = numbered(rig, 2);
  Storage into = rig.storage(2 * kSlice, 0xee);
  (void)receive_group(rig, into, 2);
  WatchedDevice device(rig);
  device.refuses = true;
  Request* const first = send_one(rig, from, 0);
  SECTION("at its end") { CHECK_FALSE(isend(rig.sender(), from, kSlice, 101, kSlice)); }
  SECTION("in a test") { CHECK_FALSE(test_once(*first, nullptr)); }
  CHECK(log.count(LogLevel::kWarn) == 1);
  device.refuses = false;
  CHECK_FALSE(test_once(*first, nullptr));
}

}  // namespace
}  // namespace beeline::test
