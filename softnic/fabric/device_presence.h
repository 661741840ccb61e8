// SPDX-License-Identifier: Apache-2.0
// Removing a device from its host, and putting it back. DeviceRecord::removals is odd while it is
// away; that one word decides, and all else follows it.
#pragma once

#include <cstdint>

#include "softnic/fabric/fabric.h"

namespace softnic {

inline bool means_removed(std::uint32_t removals) { return removals % 2 != 0; }
inline bool is_removed(const DeviceRecord& device) { return means_removed(device.removals.load()); }

// Done again, both complete what a process that died left undone.
void remove_device(const Fabric& fabric, std::uint32_t device);
void return_device(const Fabric& fabric, std::uint32_t device);

}  // namespace softnic
