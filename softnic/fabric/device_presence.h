// SPDX-License-Identifier: Apache-2.0
// Removes a device from its host and puts it back. The device is removed while
// DeviceRecord::removals is odd; port faults, sysfs and events are derived from that word.
#pragma once

#include <cstdint>

#include "softnic/fabric/fabric.h"

namespace softnic {

inline bool is_removed_count(std::uint32_t removals) { return removals % 2 != 0; }
inline bool is_removed(const DeviceRecord& device) {
  return is_removed_count(device.removals.load());
}

// Calling one of these again completes the work of a process that died half-way.
void remove_device(const Fabric& fabric, std::uint32_t device);
void return_device(const Fabric& fabric, std::uint32_t device);

}  // namespace softnic
