// SPDX-License-Identifier: Apache-2.0
//
// Finds the network interface of a RoCE or iWARP port, and the device's PCI function through it.
// Drivers differ in where they show the interface, so there are several sources; the most reliable
// is first.
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
// Empty: this process can see none.
std::string netdev_of(const NetdevQuestion& question);

// A source of netdev_of(): what `rdma link` prints, from the kernel's RDMA netlink interface.
// Empty: the port has no interface in this network namespace, or the kernel does not say.
std::string netdev_by_netlink(const std::string& ibdev, std::uint8_t port);

// The interface with the hardware address with which the GID begins, as in the only GID of an iWARP
// port.
std::string netdev_with_mac(const std::string& sysfs_root, const Gid& gid);

// The PCI function of a device, or that of its network interface, since soft devices (rxe, siw)
// have none. Empty: neither has one.
std::string pci_path_of(const std::string& sysfs_root, const std::string& ibdev,
                        const std::string& netdev);

}  // namespace beeline
