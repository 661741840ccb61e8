// SPDX-License-Identifier: Apache-2.0
//
// The sources are, in this order: GID table, sysfs, netlink, hardware address.
#include "plugin/device/netdev.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "plugin/device/sysfs.h"

namespace beeline {

std::string netdev_of(const NetdevQuestion& question) {
  const auto named = std::ranges::find_if(
      question.gids, [](const GidEntry& entry) { return !entry.ndev.empty(); });
  if (named != question.gids.end()) return named->ndev;
  // rxe shows it here, even if its interface has no address and therefore no GID.
  std::string parent = read_line(ibdev_dir(question.sysfs_root, question.ibdev) + "/parent");
  if (!parent.empty()) return parent;
  // Netlink describes this machine, and not the sysfs tree of a test.
  if (question.sysfs_root == "/sys") {
    std::string told = netdev_by_netlink(question.ibdev, question.port);
    if (!told.empty()) return told;
  }
  if (!question.is_iwarp || question.gids.empty()) return {};
  return netdev_with_mac(question.sysfs_root, question.gids.front().gid);
}

std::string netdev_with_mac(const std::string& sysfs_root, const Gid& gid) {
  char mac[18];
  std::snprintf(mac, sizeof mac, "%02x:%02x:%02x:%02x:%02x:%02x", gid[0], gid[1], gid[2], gid[3],
                gid[4], gid[5]);
  std::error_code error;
  for (std::filesystem::directory_iterator at(sysfs_root + "/class/net", error), end;
       !error && at != end; at.increment(error)) {
    if (read_line(at->path().string() + "/address") == mac) return at->path().filename().string();
  }
  return {};
}

std::string pci_path_of(const std::string& sysfs_root, const std::string& ibdev,
                        const std::string& netdev) {
  std::string own = pci_function_of(real_path(ibdev_dir(sysfs_root, ibdev) + "/device"));
  if (!own.empty() || netdev.empty()) return own;
  // A virtio interface is below its PCI function.
  return pci_function_of(real_path(sysfs_root + "/class/net/" + netdev + "/device"));
}

}  // namespace beeline
