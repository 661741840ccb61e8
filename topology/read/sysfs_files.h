// SPDX-License-Identifier: Apache-2.0
//
// Small files, links and folders of sysfs. What is absent is empty: no kernel has all of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/pci_address.h"

namespace beeline::topology {

// The first line, without its end.
std::string first_line(const std::string& path);
// What a link says, not what it leads to.
std::string link_target(const std::string& path);
// The names in a folder, in an order that does not change; hidden ones left out.
std::vector<std::string> names_in(const std::string& path);
bool is_there(const std::string& path);

// Where a link of sysfs leads: ".../pci0000:17/0000:17:01.0/0000:1b:00.0/net/eth0".
struct PciChain {
  std::optional<PciAddress> root_bus = {};  // device 0 on it
  std::vector<PciAddress> functions = {};   // from the root bus downwards
};
// Of the last root bus on the way: a controller of its own may be below a function (VMD).
PciChain pci_chain_of(const std::string& target);

// The function that an entry of a class belongs to: by its own link or by the one named `device`
// within. Nothing for what has no PCI.
std::optional<PciAddress> function_of(const std::string& path);

}  // namespace beeline::topology
