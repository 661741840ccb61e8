// SPDX-License-Identifier: Apache-2.0
// Adds completions to a completion queue: the process's own requester adds those of sends, a peer's
// requester those of receives.
#pragma once

#include <cstdint>

#include "softnic/fabric/arena.h"
#include "softnic/nic/peer.h"
#include "softnic/nic/runtime.h"

namespace softnic {

// The arena of a completion queue, and the slot of its process.
struct ArenaRef {
  const Arena& arena;
  std::uint32_t slot;
};

// Appends the entry. If the queue is full, the entry is lost and the queue is marked as overrun,
// which makes it unusable, as on a real device; its owner gets an event.
void push_completion(Runtime& runtime, const ArenaRef& where, std::uint32_t cq_index,
                     const CqeRecord& entry);

// Whether the entry causes an event on a queue that is armed in this way.
bool has_to_notify(std::uint32_t armed, const CqeRecord& entry) noexcept;

// Disarms the queue and writes an event to its channel. Two events for one completion are allowed,
// as with hardware.
void notify_channel(const Fabric& fabric, const ArenaRef& where, CqRecord& cq);
// Completes notify_channel() for a process that died after it disarmed the queue.
void finish_notifying(const Fabric& fabric, const ArenaRef& where, CqRecord& cq,
                      std::uint32_t word);

}  // namespace softnic
