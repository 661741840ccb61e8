// SPDX-License-Identifier: Apache-2.0
// Waiting until nobody is inside our memory or queues any more.
//
// A requester makes its `busy` word odd, then looks at the target's state and keys; a target
// changes state or key, then looks at `busy`. Each change is a read-modify-write, which on x86 is a
// full fence, so either the requester sees the change and stays out, or the target sees the
// requester and waits for it to leave.
#pragma once

#include <cstdint>

#include "softnic/fabric/arena.h"
#include "softnic/nic/runtime.h"

namespace softnic {

// Marks a requester as inside for as long as it lives.
class BusyGuard {
 public:
  explicit BusyGuard(QpRecord& own) noexcept : busy_(own.busy) {
    entered_ = busy_.load(std::memory_order_relaxed) + 1;
    busy_.exchange(entered_);
  }
  BusyGuard(const BusyGuard&) = delete;
  BusyGuard& operator=(const BusyGuard&) = delete;
  ~BusyGuard() { busy_.store(entered_ + 1); }

 private:
  Shared<std::uint32_t>& busy_;
  std::uint32_t entered_ = 0;
};

// Until the requester of queue pair `qpn`, wherever it runs, is not where it was. A dead one is
// not.
void wait_for_requester(Runtime& runtime, std::uint32_t qpn);

// Until no requester of ours, and none connected to a QP of ours, is where it was.
void wait_for_all_requesters(Runtime& runtime);

}  // namespace softnic
