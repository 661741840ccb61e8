// SPDX-License-Identifier: Apache-2.0
//
// The devices that may stand in for one that has no link or is gone: all others of the same kind,
// the nearest first.
//
// Lifecycle: as the device table. Threads: const.
#pragma once

#include <span>
#include <vector>

#include "plugin/device/rail_devices.h"

namespace beeline {

class StandbyDevices {
 public:
  explicit StandbyDevices(std::span<const Device> all);

  // They are as the scan has found them. Before one is used, ask for its Device::newest().
  std::span<const Device* const> of(const Device& own) const noexcept {
    return by_index_[static_cast<std::size_t>(own.index)];
  }

 private:
  std::vector<std::vector<const Device*>> by_index_;
};

}  // namespace beeline
