// SPDX-License-Identifier: Apache-2.0
//
// Flushes writes to GPU memory by RDMA READs through the NICs that have written it: a READ pushes
// earlier writes of the same NIC ahead of it. Each rail has a queue pair for that. READs for which
// it has no room wait here, so that iflush never has to answer "call again". READs that fail wait
// here, too, for a new queue pair.
//
// Memory: about 6 KiB, and 2 KiB for each rail.
// Threads: as the comm's data path, but for add_rail().
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/check/assert.h"
#include "plugin/device/loopback.h"
#include "plugin/transfer/work_id.h"
#include "plugin/wire/limits.h"

namespace beeline {

class Flusher {
 public:
  static constexpr std::uint32_t kDepth = 64;  // READs that the queue pair of a rail takes
  static constexpr std::size_t kRequests = 2 * wire::kMaxGroups;

  // The READs write their bytes, which have no meaning, into `place`.
  Flusher(std::size_t rails, void* place);

  // By the thread that registers memory, before it passes on memory that is registered with this
  // rail. Without a loopback, READs of the rail wait. `lkey` is that of the place.
  void add_rail(std::size_t rail, const Loopback* loopback, std::uint32_t lkey) noexcept;
  // The rail has a new loopback, at the same place. READs that were posted on the former one never
  // complete: they are posted again, with those that wait.
  void renew_rail(std::size_t rail, const Loopback* loopback, std::uint32_t lkey) noexcept;
  bool has_loopback(std::size_t rail) const noexcept { return rails_[rail].loopback != nullptr; }

  // One byte of a registration, which is read by some rails. `rkeys` are by rail.
  struct Target {
    std::uint64_t address = 0;
    const std::array<std::uint32_t, wire::kMaxRails>* rkeys = nullptr;
    std::uint8_t rails = 0;  // a bit for each
  };
  // READs for the fence of a path, whose completions the caller counts. False: the rail cannot.
  bool read_for_fence(std::size_t rail, std::uint64_t address, std::uint32_t rkey,
                      FenceRead fence) noexcept;
  void on_fence_read(std::size_t rail) noexcept {
    --rails_[rail].posted;
    if (waiting_ != 0) post_waiting();
  }
  // At most kMaxReceives targets.
  void plan(std::uint16_t request, std::span<const Target> targets) noexcept;
  // Leaves only those rails of the plan that have carried the data: `carriers_of(address)` is a bit
  // for each. A registration is read once by each rail, which flushes all data that the rail has
  // written to it. Returns the rails that are left.
  template <class CarriersOf>
  std::uint8_t narrow(std::uint16_t request, CarriersOf&& carriers_of) noexcept {
    Plan& plan = plans_[request];
    for (std::uint8_t i = 0; i < plan.count; ++i) {
      // If no carrier is known, all rails of the plan read.
      const std::uint8_t carriers = plan.rails[i] & carriers_of(plan.addresses[i]);
      if (carriers != 0) plan.rails[i] = carriers;
      plan.rails[i] &= static_cast<std::uint8_t>(~left_);
    }
    return merge(request);
  }
  // Posts the READs of the plan, or lets them wait. Returns their number.
  std::uint8_t start(std::uint16_t request) noexcept;

  // A READ that has failed waits.
  void on_completion(std::size_t rail, std::uint16_t request, bool success) noexcept;
  // No READ of one of these rails will succeed before the rail is renewed. READs that were posted
  // still complete; those that wait stay.
  bool is_broken(std::uint8_t rails) const noexcept;
  bool has_loopbacks(std::uint8_t rails) const noexcept;          // each of them
  std::uint8_t failed_rails() const noexcept { return failed_; }  // of which a READ has failed
  // How many READs of the rail have failed since one has not.
  std::uint8_t& failures_in_a_row(std::size_t rail) noexcept {
    return rails_[rail].failures_in_a_row;
  }
  int refusal() const noexcept { return refusal_; }  // the errno of the last READ not accepted
  bool waits() const noexcept { return waiting_ != 0; }
  bool waits_for(std::size_t rail) const noexcept;
  // Calls `forget(request)` for each READ of these rails that waits.
  template <class F>
  void drop_waiting(std::uint8_t rails, F&& forget) {
    for (std::uint64_t rest = waiting_; rest != 0; rest &= rest - 1) {
      const auto request = static_cast<std::uint16_t>(std::countr_zero(rest));
      Plan& plan = plans_[request];
      for (std::uint8_t i = 0; i < plan.count; ++i) {
        for (unsigned left = plan.rails[i] & rails; left != 0; left &= left - 1) forget(request);
        plan.rails[i] &= static_cast<std::uint8_t>(~rails);
      }
      if (reads_left(request) == 0) waiting_ &= ~(std::uint64_t{1} << request);
    }
  }

  // The rail's device is gone: nothing is read by it any more, and its READs never complete. Calls
  // `forget(request)` for each READ that was posted or waits.
  template <class F>
  void leave_rail(std::size_t rail, F&& forget) {
    const std::uint8_t bit = bit_of(rail);
    left_ |= bit;
    failed_ &= static_cast<std::uint8_t>(~bit);
    for (std::uint16_t request = 0; request < kRequests; ++request) {
      std::uint8_t& posted = rails_[rail].reads[request];
      for (; posted != 0; --posted) forget(request);
    }
    rails_[rail].posted = 0;
    drop_waiting(bit, forget);
    post_waiting();
  }
  // The rail has another device. `key_at(address)` is the key of memory that will be read by it, or
  // none.
  template <class KeyAt>
  void return_rail(std::size_t rail, KeyAt&& key_at) {
    BL_ASSERT(has_left(rail), "a rail comes back after it has left");
    left_ &= static_cast<std::uint8_t>(~bit_of(rail));
    for (std::uint64_t rest = delayed_; rest != 0; rest &= rest - 1) {
      const auto request = static_cast<std::uint16_t>(std::countr_zero(rest));
      Plan& plan = plans_[request];
      for (std::uint8_t i = 0; i < plan.count; ++i) {
        const std::optional<std::uint32_t> key = key_at(plan.addresses[i]);
        plan.rails[i] &= static_cast<std::uint8_t>(~bit_of(rail));
        if (key) plan.rails[i] |= bit_of(rail);
        keys_of(request, i)[rail] = key.value_or(0);
      }
    }
  }
  bool has_left(std::size_t rail) const noexcept { return (left_ & bit_of(rail)) != 0; }

  // Plans that begin later, when all data of their request has arrived: each_delayed() calls
  // `is_started` for each of them. True: the plan has been started.
  void delay(std::uint16_t request) noexcept { delayed_ |= std::uint64_t{1} << request; }
  template <class F>
  void each_delayed(F&& is_started) {
    for (std::uint64_t rest = delayed_; rest != 0; rest &= rest - 1) {
      const auto request = static_cast<std::uint16_t>(std::countr_zero(rest));
      if (is_started(request)) delayed_ &= ~(std::uint64_t{1} << request);
    }
  }

 private:
  static constexpr std::uint8_t bit_of(std::size_t rail) noexcept {
    return static_cast<std::uint8_t>(1U << rail);
  }

  struct RailState {
    const Loopback* loopback = nullptr;
    std::uint32_t lkey = 0;
    std::uint8_t failures_in_a_row = 0;
    std::uint32_t posted = 0;
    std::array<std::uint8_t, kRequests> reads{};  // of these, by request
  };
  // The READs of one request. Their remote keys are in keys_.
  struct Plan {
    std::array<std::uint64_t, wire::kMaxReceives> addresses;
    std::array<std::uint8_t, wire::kMaxReceives> rails;    // that have not been posted
    std::array<std::uint8_t, wire::kMaxReceives> started;  // all of them, when it was started
    std::uint8_t count = 0;
  };

  std::uint32_t* keys_of(std::uint16_t request, std::size_t target) noexcept {
    return &keys_[(request * wire::kMaxReceives + target) * rail_count_];
  }
  bool is_same_registration(std::uint16_t request, std::size_t a, std::size_t b) noexcept;
  std::uint8_t merge(std::uint16_t request) noexcept;
  int reads_left(std::uint16_t request) const noexcept;
  void put_back(std::uint16_t request, std::size_t rail) noexcept;
  void post_waiting() noexcept;
  void post_reads_of(std::uint16_t request) noexcept;
  bool post_read(std::uint16_t request, std::size_t target, std::size_t rail) noexcept;
  bool post_read_of(std::size_t rail, std::uint64_t address, std::uint32_t rkey,
                    std::uint64_t id) noexcept;

  std::size_t rail_count_;
  void* place_;
  std::array<RailState, wire::kMaxRails> rails_;
  std::uint8_t failed_ = 0;  // a bit for each rail
  std::uint8_t left_ = 0;    // the same: their devices are gone
  int refusal_ = 0;
  std::uint64_t waiting_ = 0;  // a bit for each request of which a READ waits
  std::uint64_t delayed_ = 0;  // the same
  std::array<Plan, kRequests> plans_;
  std::unique_ptr<std::uint32_t[]> keys_;  // by request, target and rail
  static_assert(kRequests == 64);
};

}  // namespace beeline
