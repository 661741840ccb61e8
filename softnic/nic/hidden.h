// SPDX-License-Identifier: Apache-2.0
// The hazard of writes that do not show: data for a GPU's memory lands beside it, and is put in its
// place when a device reads the region, as a READ through the NIC pushes writes ahead of it on
// their way to the GPU. A program that skips the flush finds old bytes, every time.
#pragma once

#include "softnic/nic/completion_ring.h"
#include "softnic/nic/peer.h"

namespace softnic {

// Where bytes for `address` of the region go instead.
inline uint64_t beside(const MrRecord& region, uint64_t address) noexcept {
  return region.shadow + (address - region.base);
}

// Bytes were written beside [address, address + length).
void note_hidden(Runtime& runtime, Peer& owner, MrRecord& region, uint64_t address,
                 uint64_t length);

// Puts all that was written beside the region in its place.
void reveal(Runtime& runtime, Peer& owner, MrRecord& region);
// The same for a region of this process.
void reveal_own(Runtime& runtime, MrRecord& region);

}  // namespace softnic
