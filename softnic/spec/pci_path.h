// SPDX-License-Identifier: Apache-2.0
// Parses the position of a PCI function: the path of its directory below /sys/devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/problem.h"

namespace softnic {

struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t slot = 0;
  std::uint8_t function = 0;
};

// "0000:41:00.0", in lower case as sysfs prints it.
std::optional<PciAddress> parse_pci_address(const std::string& text);

struct PciPath {
  std::string root;                // "pci0000:40"
  std::vector<std::string> steps;  // bridges from the root down; the function itself is last

  const std::string& function() const { return steps.back(); }
  // "pci0000:40/0000:40:01.1": the root and the first `count` steps.
  std::string path_to(std::size_t count) const;
};

// Checks each element, and that the first step is on the bus of the root. The error names the
// element that is wrong.
beeline::Outcome<PciPath> parse_pci_path(const std::string& text);

}  // namespace softnic
