// SPDX-License-Identifier: Apache-2.0
// The producing end of a completion queue: our own requester for sends, a peer's for receives.
#pragma once

#include "softnic/fabric/arena.h"
#include "softnic/nic/peer.h"
#include "softnic/nic/runtime.h"

namespace softnic {

// The arena in which a completion queue lives, and whose it is.
struct ArenaRef {
  const Arena& arena;
  std::uint32_t slot;
};

// Appends the entry. If the queue is full the entry is lost, the queue is marked overrun and its
// owner told; the queue is dead then, as on a real device.
void push_completion(Runtime& runtime, const ArenaRef& where, std::uint32_t cq_index,
                     const CqeRecord& entry);

// Whether a queue that is armed so is to tell its channel of the entry.
bool has_to_notify(std::uint32_t armed, const CqeRecord& entry) noexcept;

// Disarms the queue and tells its channel. Twice for one completion is allowed, as with hardware.
void notify_channel(const Fabric& fabric, const ArenaRef& where, CqRecord& cq);
// What is left to do for one who died between disarming and telling.
void finish_notifying(const Fabric& fabric, const ArenaRef& where, CqRecord& cq,
                      std::uint32_t word);

}  // namespace softnic
