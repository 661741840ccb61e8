// SPDX-License-Identifier: Apache-2.0
//
// Messages of many sizes through a TransferRig whose paths may fail.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>

#include "tests/component/device_rig.h"
#include "tests/component/transfer_rig.h"
#include "tests/support/catch.h"

namespace beeline::test {

inline constexpr std::size_t kLargest = 600'000;

inline bool is_equal(Storage& a, Storage& b) {
  return std::equal(a.data(), a.data() + a.size(), b.data());
}

// Moves everything forward until `is_over`.
template <class IsOver>
void run_until(TransferRig& rig, IsOver&& is_over) {
  const auto deadline = Clock::now() + kPatience;
  while (!is_over()) {
    rig.bring_messages();
    collect(rig.sender());
    collect(rig.receiver());
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

}  // namespace beeline::test
