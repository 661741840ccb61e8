// SPDX-License-Identifier: Apache-2.0
// Writes that do not show at once: data for a GPU's memory lands beside it, is listed, and is put
// in its place later. There are two reasons for it.
//
// The hazard of the same name (HazardRecord): data moves when a device reads the region, as a READ
// through the NIC pushes writes ahead of it on their way to the GPU. A program that skips the flush
// finds old bytes, every time.
//
// A mirror (nic/gpu_mirror.h): only the owner can move the data, and does by itself.
#pragma once

#include "softnic/nic/completion_ring.h"
#include "softnic/nic/peer.h"

namespace softnic {

// Where bytes for `address` of the region go instead.
inline std::uint64_t staging_address(const MrRecord& region, std::uint64_t address) noexcept {
  return region.staging + (address - region.base);
}

// Lists the bytes that were written beside [address, address + length). False: there is no room,
// since the owner of a mirror has not come for what is listed, and they have to be written again.
bool record_deferred(Runtime& runtime, Peer& owner, MrRecord& region, std::uint64_t address,
                     std::uint64_t length);
// The same for a region of this process.
bool record_own_deferred(Runtime& runtime, MrRecord& region, std::uint64_t address,
                         std::uint64_t length);

// Puts all that was written beside the region in its place. Afterwards the bytes from `address` on
// may be read. False: they cannot be; they are in a mirror of another process, or not to be had.
bool apply_deferred(Runtime& runtime, Peer& owner, MrRecord& region, std::uint64_t address,
                    std::uint64_t length);
// The same for a region of this process.
bool apply_own_deferred(Runtime& runtime, MrRecord& region, std::uint64_t address,
                        std::uint64_t length);

}  // namespace softnic
