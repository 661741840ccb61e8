// SPDX-License-Identifier: Apache-2.0
//
// Devices that were removed from their host, or failed for good, and came back. The old contexts
// stay unusable, so such a device is opened again: it gets a new DeviceContext, and each of its
// ports a new Device, which Device::newest() of the former one returns.
//
// Lifecycle: as the device table, which has one. What was opened stays open, because other threads
// may still use it. Threads: reopen() and each_port_of() are called by the control thread only.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>

#include "plugin/device/device.h"

namespace beeline {

class ReturnedDevices {
 public:
  explicit ReturnedDevices(const verbs::Api& api) : api_(&api) {}

  // Opens the device of that context again. Null: it is not there yet, has no link, or is not
  // the same device.
  // `known` are all devices of the scan. The numbers of new contexts begin with `first_index`.
  Result<DeviceContext*> reopen(const DeviceContext& gone, std::span<const Device> known,
                                const std::string& sysfs_root, int first_index);

  // Calls `take` for each port of this context.
  template <class Take>
  void each_port_of(const DeviceContext& context, Take&& take) const {
    for (const Opened& opened : all_) {
      if (opened.context.get() != &context) continue;
      for (const Device& port : opened.ports) take(port);
    }
  }

 private:
  struct Opened {
    std::unique_ptr<DeviceContext> context;
    std::deque<Device> ports;  // stay where they are
  };

  const verbs::Api* api_;
  std::deque<Opened> all_;
};

}  // namespace beeline
