// SPDX-License-Identifier: Apache-2.0
//
// A comm of which a path fails while data and grants are under way: both ends fence the path and
// exchange their reports, and every byte arrives over the other paths, once.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/component/device_rig.h"
#include "tests/component/transfer_rig.h"
#include "tests/support/catch.h"

namespace beeline::test {
namespace {

constexpr std::size_t kLargest = 600'000;

// What a broken link, a failing device or a peer does to a queue pair.
void break_path(const Comm& comm, std::size_t path) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  BL_MUST(ibv_modify_qp(comm.paths()[path].queues.qp.get(), &attr, IBV_QP_STATE) == 0);
}

// The path's data arrives, and its notices do not. There can be only one at a time.
class NoticeLoss {
 public:
  NoticeLoss(const Comm& sender, std::size_t path)
      : context_(sender.paths()[path].queues.qp->context) {
    qp_ = sender.paths()[path].queues.qp.get();
    real_ = std::exchange(context_->ops.post_send, &call);
  }
  NoticeLoss(const NoticeLoss&) = delete;
  NoticeLoss& operator=(const NoticeLoss&) = delete;
  ~NoticeLoss() { context_->ops.post_send = real_; }

 private:
  static int call(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** refused) {
    if (qp != qp_) return real_(qp, work, refused);
    ibv_send_wr** link = &work;
    while (*link != nullptr && (*link)->opcode != IBV_WR_SEND) link = &(*link)->next;
    *link = nullptr;
    return work == nullptr ? 0 : real_(qp, work, refused);
  }

  ibv_context* context_;
  static inline const ibv_qp* qp_ = nullptr;
  static inline int (*real_)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
};

// A path's writes and sends arrive, and their acknowledgements do not. There can be only one at a
// time.
class AckLoss {
 public:
  AckLoss(const Comm& sender, std::size_t path)
      : context_(sender.paths()[path].queues.qp->context) {
    cq_ = sender.paths()[path].queues.cq.get();
    real_ = std::exchange(context_->ops.poll_cq, &call);
  }
  AckLoss(const AckLoss&) = delete;
  AckLoss& operator=(const AckLoss&) = delete;
  ~AckLoss() { context_->ops.poll_cq = real_; }

 private:
  static int call(ibv_cq* cq, int most, ibv_wc* completions) {
    const int found = real_(cq, most, completions);
    for (int i = 0; cq == cq_ && i < found; ++i) {
      ibv_wc& one = completions[i];
      if (one.status == IBV_WC_SUCCESS) one.status = IBV_WC_RETRY_EXC_ERR;
    }
    return found;
  }

  ibv_context* context_;
  static inline const ibv_cq* cq_ = nullptr;
  static inline int (*real_)(ibv_cq*, int, ibv_wc*) = nullptr;
};

// A receive that NCCL does not test: it looks at the data.
Request* receive_unseen(TransferRig& rig, Storage& into) {
  const ReceiveBuffer buffer = {
      .data = into.data(), .capacity = into.size(), .tag = 0, .memory = &into.handle()};
  Request* const request = must(irecv(rig.receiver(), {&buffer, 1}, Need::kNothing));
  if (request != nullptr) BL_MUST(must(test_once(*request, nullptr)));
  return request;
}

bool is_equal(Storage& a, Storage& b) {
  return std::equal(a.data(), a.data() + a.size(), b.data());
}

// Moves everything forward until `is_over`.
template <class IsOver>
void run_until(TransferRig& rig, IsOver&& is_over) {
  const auto deadline = Clock::now() + kPatience;
  while (!is_over()) {
    rig.bring_messages();
    rig.sender().collect();
    rig.receiver().collect();
    BL_MUST(Clock::now() < deadline);
  }
}

// Moves messages of many sizes through the rig, with several in flight, and compares each of them.
class Traffic {
 public:
  Traffic(TransferRig& rig, std::uint32_t seed) : rig_(&rig), random_(seed) {
    for (Slot& slot : slots_) {
      slot.from = std::make_unique<Storage>(rig.storage(kLargest));
      slot.into = std::make_unique<Storage>(rig.storage(kLargest));
    }
  }

  // One call each of what NCCL would call.
  void step() {
    Slot& slot = slots_[random_() % slots_.size()];
    if (slot.receive == nullptr && slot.is_empty) return begin(slot);
    if (slot.send == nullptr && !slot.is_sent) {
      // Sends are in the order of their receives.
      if (slot.turn != sent_) return;
      slot.send = must(isend(rig_->sender(), *slot.from, slot.size, 0));
      if (slot.send != nullptr) ++sent_;
    }
    if (slot.send != nullptr && must(test_once(*slot.send, nullptr))) {
      slot.send = nullptr;
      slot.is_sent = true;
    }
    int size = -1;
    if (slot.receive != nullptr && must(test_once(*slot.receive, &size))) {
      slot.receive = nullptr;
      CHECK(static_cast<std::size_t>(size) == slot.size);
      const bool is_equal =
          std::equal(slot.from->data(), slot.from->data() + slot.size, slot.into->data());
      CHECK(is_equal);
    }
    if (slot.is_sent && slot.receive == nullptr) {
      slot.is_empty = true;
      slot.is_sent = false;
      ++finished_;
    }
  }
  void finish() {
    is_ending_ = true;
    const auto deadline = Clock::now() + kPatience;
    while (!std::ranges::all_of(slots_, &Slot::is_empty)) {
      step();
      rig_->bring_messages();
      BL_MUST(Clock::now() < deadline);
    }
  }
  std::uint64_t finished() const { return finished_; }

 private:
  struct Slot {
    std::unique_ptr<Storage> from;
    std::unique_ptr<Storage> into;
    std::size_t size = 0;
    std::uint64_t turn = 0;
    Request* receive = nullptr;
    Request* send = nullptr;
    bool is_sent = false;
    bool is_empty = true;
  };

  void begin(Slot& slot) {
    if (is_ending_) return;
    constexpr std::array<std::size_t, 6> kSizes = {0, 8, 3000, 70'000, 200'000, kLargest};
    slot.size = kSizes[random_() % kSizes.size()];
    std::generate_n(slot.from->data(), slot.size,
                    [&] { return static_cast<unsigned char>(random_() >> 8); });
    const ReceiveBuffer buffer = {
        .data = slot.into->data(), .capacity = slot.size, .tag = 0, .memory = &slot.into->handle()};
    slot.receive = must(irecv(rig_->receiver(), {&buffer, 1}));
    if (slot.receive == nullptr) return;
    slot.turn = begun_++;
    slot.is_empty = false;
  }

  TransferRig* rig_;
  std::mt19937 random_;
  std::array<Slot, 12> slots_;
  std::uint64_t begun_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t finished_ = 0;
  bool is_ending_ = false;
};

}  // namespace

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

// The sender's device has given up waiting for acknowledgements of data that has arrived, and the
// receiver has not polled since.
TEST_CASE("resume: what has arrived is not sent again", "[component][transfer][resume]") {
  const auto notify = GENERATE(Notify::kImmediate, Notify::kNotice);
  const auto size = GENERATE(as<std::size_t>(), 8, kLargest);
  CAPTURE(notify, size);
  TransferRig rig({.paths = 2, .notify = notify, .recovers = true});
  Storage from = rig.storage(size, 0x33);
  Storage into = rig.storage(size);
  const AckLoss loss(rig.sender(), 1);
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
    rig.receiver().collect();
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
