// SPDX-License-Identifier: Apache-2.0
//
// The devices that a plugin offers, and which of them a comm uses.
#pragma once

#include <string>
#include <vector>

#include "tools/perf/net_table.h"
#include "tools/perf/options.h"

namespace beeline::perf {

struct Device {
  int index = 0;
  ncclNetProperties_v12_t props{};
  std::string name;
};

Outcome<std::vector<Device>> list_devices(const Net& net);

// A device by its name, by the name of its port without the prefix "beeline_", or by its index.
Outcome<int> find_device(const std::vector<Device>& devices, const std::string& wanted);

// The device of comm `comm` on `rank`. Without a spec the comms take the devices in turn.
Outcome<int> choose_device(const DeviceSpec& spec, const std::vector<Device>& devices, int comm,
                           int rank);

// "host+cuda"
std::string pointer_kinds(int support);

// The text of --list.
std::string describe_devices(const Net& net, const std::vector<Device>& devices);

}  // namespace beeline::perf
