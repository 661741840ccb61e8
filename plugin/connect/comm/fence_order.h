// SPDX-License-Identifier: Apache-2.0
//
// The order to move a queue pair to ERROR, so that its device discards what still comes for it. The
// control thread carries it out, because the driver of a device that is not well may take a second
// or longer for it, and NCCL's thread moves the data of other connections meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

#include "plugin/verbs/check.h"
#include "plugin/verbs/create.h"

namespace beeline {

class FenceOrder {
 public:
  enum class State : std::uint8_t { kWaits, kRuns, kInError, kRefused, kWithdrawn };

  explicit FenceOrder(const verbs::Qp& qp) noexcept : api_(&qp.api()), qp_(qp.get()) {}

  // --- The control thread ---
  void carry_out() noexcept {
    State waits = State::kWaits;
    if (!state_.compare_exchange_strong(waits, State::kRuns)) return;
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_ERR;
    const bool is_moved = api_->modify_qp(qp_, &attr, IBV_QP_STATE) == 0;
    state_.store(is_moved ? State::kInError : State::kRefused);
    state_.notify_all();
  }

  // --- The thread that has the comm ---
  State state() const noexcept { return state_.load(); }
  // From now on the queue pair is not touched, but for a call of the driver that is under way. The
  // control thread can destroy it.
  void withdraw() noexcept {
    State waits = State::kWaits;
    (void)state_.compare_exchange_strong(waits, State::kWithdrawn);
  }
  // Waits for that call as well, so that any thread can destroy the queue pair.
  void end() noexcept {
    withdraw();
    state_.wait(State::kRuns);
  }

 private:
  const verbs::Api* const api_;
  ibv_qp* const qp_;
  std::atomic<State> state_ = State::kWaits;
};

}  // namespace beeline
