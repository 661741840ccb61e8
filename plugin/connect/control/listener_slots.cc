// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/control/listener_slots.h"

#include <algorithm>

namespace beeline {

void ListenerSlots::look(ControlMailbox& mailbox, std::int64_t now_ns) {
  if (slots_ == nullptr) return;
  for (const ControlMailbox::ListenerCalls& calls : mailbox.take_listener_calls()) {
    look_at(calls, now_ns);
  }
}

void ListenerSlots::look_at(const ControlMailbox::ListenerCalls& calls, std::int64_t now_ns) {
  auto found = shown_.find(calls.listener);
  if (found == shown_.end()) {
    if (calls.waits_since_ns == 0 || !calls.was_called) return;
    found = shown_.emplace(calls.listener, Shown{}).first;
    StatsSlot& slot = found->second.slot;
    slot = slots_->acquire(SlotRole::kListen, calls.devices);
    slot.set_peer({}, {}, {.pid = 0, .ours = calls.listener, .theirs = 0});
    slot.set_state(SlotState::kReady);
  }
  Shown& shown = found->second;
  if (calls.was_called) shown.called_ns = now_ns;
  const bool is_called = now_ns - shown.called_ns <= kNotCalledNs;
  if (!is_called) shown.idle_until_ns = now_ns;
  if (is_called && calls.waits_since_ns != 0) {
    // A wait does not go on while nobody calls.
    shown.slot.set_wait(Wait::kAccept, std::max(calls.waits_since_ns, shown.idle_until_ns), 0);
  } else {
    shown.slot.set_wait(Wait::kNothing, 0, 0);
  }
}

void ListenerSlots::on_closed(const std::vector<std::uint32_t>& listeners) {
  for (const std::uint32_t listener : listeners) shown_.erase(listener);
}

}  // namespace beeline
