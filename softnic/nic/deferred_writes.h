// SPDX-License-Identifier: Apache-2.0
// Deferred writes: data for GPU memory is written to staging memory and listed, and is moved to its
// place later. There are two uses.
//
// The hazard `hide` (HazardRecord): the data is moved when a device reads the region, because a
// READ through the NIC pushes earlier writes to the GPU, or when the driver flushes. A program that
// skips this flush always finds old bytes.
//
// A mirror (nic/gpu_mirror.h): only the owner can move the data to its GPU.
#pragma once

#include <cstdint>

#include "softnic/nic/completion_ring.h"
#include "softnic/nic/peer.h"

namespace softnic {

// The place in the staging memory for bytes of `address`.
inline std::uint64_t staging_address(const MrRecord& region, std::uint64_t address) noexcept {
  return region.staging + (address - region.base);
}

// Lists bytes that were written to the staging memory of [address, address + length). Returns false
// if the list is full because the owner of a mirror has not copied; the write must then be
// repeated.
bool record_deferred(Runtime& runtime, Peer& owner, MrRecord& region, std::uint64_t address,
                     std::uint64_t length);
// The same for a region of this process.
bool record_own_deferred(Runtime& runtime, MrRecord& region, std::uint64_t address,
                         std::uint64_t length);

// Moves all deferred writes of the region to their place, so that bytes from `address` on can be
// read. Returns false if that is not possible: the mirror belongs to another process, or a copy
// failed.
bool apply_deferred(Runtime& runtime, Peer& owner, MrRecord& region, std::uint64_t address,
                    std::uint64_t length);
// The same for a region of this process.
bool apply_own_deferred(Runtime& runtime, MrRecord& region, std::uint64_t address,
                        std::uint64_t length);

// Moves all deferred writes that the hazard `hide` hides from this process.
void reveal_hidden_writes();

}  // namespace softnic
