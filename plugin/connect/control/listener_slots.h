// SPDX-License-Identifier: Apache-2.0
//
// Shows in the statistics page the listeners at which accept() waits. A listener gets its slot when
// the control thread, which looks about once a second, sees it wait. So the many listeners that
// have their connection at once need none.
//
// Threads: the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "plugin/connect/comm/comm_slots.h"
#include "plugin/connect/comm/control_mailbox.h"

namespace beeline {

class ListenerSlots {
 public:
  // Null: nothing is shown.
  explicit ListenerSlots(CommSlots* slots) noexcept : slots_(slots) {}

  void look(ControlMailbox& mailbox, std::int64_t now_ns);
  void on_closed(const std::vector<std::uint32_t>& listeners);

 private:
  struct Shown {
    StatsSlot slot;
    std::int64_t called_ns = 0;      // when accept() is known to have been called last
    std::int64_t idle_until_ns = 0;  // until when it was not called for long
  };
  void look_at(const ControlMailbox::ListenerCalls& calls, std::int64_t now_ns);

  CommSlots* slots_;
  std::map<std::uint32_t, Shown> shown_;  // by the listener's number
};

}  // namespace beeline
