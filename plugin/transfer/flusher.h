// SPDX-License-Identifier: Apache-2.0
//
// Flushes writes to GPU memory by RDMA READs through the NIC that has written it: a READ pushes
// earlier writes ahead of it. READs that the queue pair has no room for wait here, so that iflush
// never has to answer "call again".
//
// Threads: as the comm's data path.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "plugin/device/loopback.h"
#include "plugin/wire/limits.h"

namespace beeline {

class Flusher {
 public:
  static constexpr std::uint32_t kDepth = 64;  // READs that the queue pair takes
  static constexpr std::size_t kRequests = 2 * wire::kMaxGroups;

  struct Read {
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
    std::uint16_t request = 0;
  };

  // Reads into `place`, whose content has no meaning. Without a loopback it is broken.
  Flusher(const Loopback* loopback, void* place, std::uint32_t lkey) noexcept
      : loopback_(loopback), place_(place), lkey_(lkey), broken_(loopback == nullptr) {}

  // Whether a completion is of one of its READs, and for which request.
  static constexpr bool is_read(std::uint64_t wr_id) noexcept { return wr_id >> 62 == 1; }
  static constexpr std::uint16_t request_of(std::uint64_t wr_id) noexcept {
    return static_cast<std::uint16_t>(wr_id);
  }

  void add(const Read& read) noexcept;
  void on_completion(bool success) noexcept;
  // No READ will succeed any more. READs that were posted still complete; those that wait stay.
  bool is_broken() const noexcept { return broken_; }
  template <class F>
  void drop_waiting(F&& forget) {
    for (; first_ != end_; ++first_) forget(waiting_[first_ % kMostWaiting].request);
  }

  // The READs to be made when all data of a request has arrived.
  struct Plan {
    std::array<Read, wire::kMaxReceives> reads;
    std::uint8_t count = 0;
  };
  // For the caller to fill in.
  Plan& plan(std::uint16_t request) noexcept {
    planned_ |= std::uint64_t{1} << request;
    return plans_[request];
  }
  const Plan& plan_of(std::uint16_t request) const noexcept { return plans_[request]; }
  // Calls `is_started` for each request with a plan. True: the plan has been carried out.
  template <class F>
  void each_planned(F&& is_started) {
    for (std::uint64_t rest = planned_; rest != 0; rest &= rest - 1) {
      const auto request = static_cast<std::uint16_t>(std::countr_zero(rest));
      if (is_started(request)) planned_ &= ~(std::uint64_t{1} << request);
    }
  }

 private:
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 62;
  static constexpr std::size_t kMostWaiting = kRequests * wire::kMaxReceives;

  void post_waiting() noexcept;

  const Loopback* loopback_;
  void* place_;
  std::uint32_t lkey_;
  bool broken_;
  std::uint32_t posted_ = 0;
  // Of the waiting READs. They only count up: places are modulo kMostWaiting.
  std::uint32_t first_ = 0;
  std::uint32_t end_ = 0;
  std::array<Read, kMostWaiting> waiting_;
  std::array<Plan, kRequests> plans_;
  std::uint64_t planned_ = 0;  // a bit for each request
  static_assert(kRequests == 64);
};

}  // namespace beeline
