// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/host_checks.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "plugin/checks/all_checks.h"

namespace beeline {
namespace {

constexpr std::string_view kActive = "4: ACTIVE";

// As sysfs has it: eight groups of four digits.
std::string sysfs_text(const Gid& gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.size(); i += 2) {
    std::array<char, 6> group{};
    std::snprintf(group.data(), group.size(), "%s%02x%02x", i == 0 ? "" : ":", gid[i], gid[i + 1]);
    text += group.data();
  }
  return text;
}

// The table of devices has read the port; only the MTU of its interface is missing.
checks::Port port_of(const Device& device, const checks::Tree& tree) {
  checks::Port port;
  port.number = device.port;
  port.folder = "/sys/class/infiniband/" + device.ibdev + "/ports/" + std::to_string(device.port);
  port.state = kActive;  // others are not in the table
  port.speed_mbps = device.facts.speed_mbps;
  port.is_ethernet = device.link_layer == LinkLayer::kEthernet;
  for (const GidEntry& gid : device.facts.gids) {
    port.gids.push_back({.index = gid.index,
                         .address = sysfs_text(gid.gid),
                         .type = gid.type == GidType::kRoceV2 ? "RoCE v2" : "IB/RoCE v1",
                         .netdev = gid.ndev});
  }
  port.netdev = device.netdev;
  if (!port.netdev.empty()) {
    port.mtu = std::atoi(tree.line("/sys/class/net/" + port.netdev + "/mtu").c_str());
  }
  return port;
}

// Ports of one verbs device are adjacent in the table.
std::vector<checks::RdmaDevice> devices_of(std::span<const Device> devices,
                                           const checks::Tree& tree) {
  std::vector<checks::RdmaDevice> all;
  for (const Device& device : devices) {
    if (all.empty() || all.back().name != device.ibdev) {
      checks::RdmaDevice& added = all.emplace_back();
      added.name = device.ibdev;
      added.folder = "/sys/class/infiniband/" + device.ibdev;
      added.is_iwarp = device.transport == Transport::kIwarp;
      added.can_open = true;
    }
    all.back().ports.push_back(port_of(device, tree));
  }
  return all;
}

}  // namespace

std::vector<Finding> check_host(std::span<const Device> devices, const Environ& environ,
                                const std::string& sysfs_root) {
  const checks::Tree tree("", sysfs_root);
  const checks::Host host = {
      .tree = tree, .devices = devices_of(devices, tree), .environ = environ};
  checks::Findings found;
  for (const auto& check : {checks::check_mtus, checks::check_gids, checks::check_subnets,
                            checks::check_bonds, checks::check_limits, checks::check_rdma_cgroup,
                            checks::check_shared_memory, checks::check_traffic_class}) {
    check(host, found);
  }
  std::vector<Finding> all = found.take();
  // A registration that fails names the limit on locked memory and the fix (memlock_advice()).
  // Where none fails, as over softnic, which locks nothing, a warning would be wrong.
  std::erase_if(all, [](const Finding& finding) {
    return finding.severity < Severity::kWarning || finding.id == "memlock-low";
  });
  return all;
}

}  // namespace beeline
