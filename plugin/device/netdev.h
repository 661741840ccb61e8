// SPDX-License-Identifier: Apache-2.0
//
// The network interface behind a RoCE or iWARP port, and the place that a device has through it.
// Drivers disagree about who tells: hence several sources, the surest first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/device/gid.h"

namespace beeline {

struct NetdevQuestion {
  std::string sysfs_root;
  std::string ibdev;
  std::uint8_t port = 1;
  bool is_iwarp = false;
  const std::vector<GidEntry>& gids;
};
// Empty: it has none that this process can see.
std::string netdev_of(const NetdevQuestion& question);

// A source of netdev_of(): what `rdma link` prints, from the kernel's RDMA netlink interface.
// Empty: the port has no interface in this network namespace, or the kernel does not say.
std::string netdev_by_netlink(const std::string& ibdev, std::uint8_t port);

// The interface whose hardware address a GID begins with, as the one GID of an iWARP port does.
std::string netdev_with_mac(const std::string& sysfs_root, const Gid& gid);

// The PCI function of a device: its own, or else that of its network interface, since soft devices
// (rxe, siw) have only that. Empty: neither has one.
std::string pci_path_of(const std::string& sysfs_root, const std::string& ibdev,
                        const std::string& netdev);

}  // namespace beeline
