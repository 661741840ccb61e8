// SPDX-License-Identifier: Apache-2.0
//
// Reads small files, links and folders of sysfs. A missing one reads as empty, since no kernel has
// all of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/pci_address.h"

namespace beeline::topology {

// The first line, without its end.
std::string first_line(const std::string& path);
// The text of a symbolic link, not resolved.
std::string link_target(const std::string& path);
// The sorted names in a folder, without hidden ones.
std::vector<std::string> names_in(const std::string& path);
bool is_there(const std::string& path);

// The PCI functions in the target of a symbolic link of sysfs:
// ".../pci0000:17/0000:17:01.0/0000:1b:00.0/net/eth0".
struct PciChain {
  std::optional<PciAddress> root_bus = {};  // device 0 on it
  std::vector<PciAddress> functions = {};   // from the root bus downwards
};
// Begins at the last root bus in the target, since a function may contain a root bus (VMD).
PciChain pci_chain_of(const std::string& target);

// The PCI function of an entry in /sys/class, by its own link or by the link `device` in it. Empty
// if it is not a PCI device.
std::optional<PciAddress> function_of(const std::string& path);

}  // namespace beeline::topology
