// SPDX-License-Identifier: Apache-2.0
//
// The counters that drivers keep for each port, under names that do not depend on the vendor.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plugin/checks/tree.h"

namespace beeline::exporter {

struct PortCounter {
  const char* name;  // of the metric
  const char* help;
  // Below the folder of the port. The first file that exists is read: drivers have names of their
  // own, and some have changed them from one kernel to the next.
  std::array<const char*, 6> files;
};
std::span<const PortCounter> port_counters();

struct PortReading {
  std::string device;  // "mlx5_0:1"
  bool is_up = false;
  std::optional<double> rate = {};                          // bytes per second
  std::map<const PortCounter*, std::uint64_t> values = {};  // of those that the driver has
};

// Those of these ports that the tree has. Only they are read, because some drivers ask the firmware
// for each file.
std::vector<PortReading> read_ports(const checks::Tree& tree, const std::set<std::string>& wanted);

}  // namespace beeline::exporter
