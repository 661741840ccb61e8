// SPDX-License-Identifier: Apache-2.0
//
// The devices of a plugin, and the choice of a device for each comm.
#pragma once

#include <string>
#include <vector>

#include "tools/perf/net.h"
#include "tools/perf/options.h"

namespace beeline::perf {

struct Device {
  int index = 0;
  ncclNetProperties_v12_t props{};
  std::string name;
};

Outcome<std::vector<Device>> list_devices(const Net& net);

// Finds a device by its name, by its name without the prefix "beeline_", or by its index.
Outcome<int> find_device(const std::vector<Device>& devices, const std::string& wanted);

// The device of comm `comm` on `rank`. If `spec` is empty, the comms take the devices in turn.
Outcome<int> choose_device(const DeviceSpec& spec, const std::vector<Device>& devices, int comm,
                           int rank);

// "host+cuda"
std::string pointer_kinds(int support);

// The output of --list.
std::string describe_devices(const Net& net, const std::vector<Device>& devices);

}  // namespace beeline::perf
