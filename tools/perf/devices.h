// SPDX-License-Identifier: Apache-2.0
//
// The start of a plugin, its devices, and the choice of a device for each comm.
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
  bool is_merged = false;  // to another device of the list: NCCL then no longer uses this one
};

// Calls the plugin's init.
Outcome<bool> init_plugin(Net& net, ncclDebugLogger_t log);

Outcome<std::vector<Device>> list_devices(const Net& net);

// Merges each `rails` devices, in their order, to one, as NCCL does with makeVDevice, and lists
// them again. Devices that are left over stay single. Fails if there are fewer than `rails`, and up
// to v8, where the plugin cannot merge.
Outcome<std::vector<Device>> merge_devices(const Net& net, std::vector<Device> devices, int rails);

// "mlx5_0" for "beeline_mlx5_0".
std::string without_prefix(const std::string& name);

// Finds a device by its name, by its name without the prefix "beeline_", by that and the number of
// its port ("mlx5_0:1"), or by its index.
Outcome<int> find_device(const std::vector<Device>& devices, const std::string& wanted);

// The device of comm `comm` on `rank`. If `spec` is empty, the comms take in turn the devices that
// are not merged into others.
Outcome<int> choose_device(const DeviceSpec& spec, const std::vector<Device>& devices, int comm,
                           int rank);

// "host+cuda"
std::string pointer_kinds(int support);

// The output of --list.
std::string describe_devices(const Net& net, const std::vector<Device>& devices);

}  // namespace beeline::perf
