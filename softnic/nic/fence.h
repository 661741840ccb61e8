// SPDX-License-Identifier: Apache-2.0
// Waits until no requester accesses this process's memory or queues.
//
// A requester makes its `busy` word odd and then reads the target's state and keys. A target
// changes a state or key and then reads `busy`. Each change is a read-modify-write, which on x86 is
// a full fence. So either the requester sees the change and makes no access, or the target sees
// that the requester is busy and waits for it.
#pragma once

#include <cstdint>

#include "softnic/fabric/arena.h"
#include "softnic/nic/runtime.h"

namespace softnic {

// Makes the `busy` word of a requester odd for the lifetime of this object.
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

// Returns when the requester of queue pair `qpn`, in whatever process, has ended the access that it
// is making now, or has died.
void wait_for_requester(Runtime& runtime, std::uint32_t qpn);

// The same for all requesters of this process and all that are connected to one of its QPs.
void wait_for_all_requesters(Runtime& runtime);

}  // namespace softnic
