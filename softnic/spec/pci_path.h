// SPDX-License-Identifier: Apache-2.0
// A function's place in the PCI tree as its sysfs path says it, taken apart.
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
  std::string upto(std::size_t count) const;
};

// Checks each element and that the first step is on the root's own bus; the error says which not.
beeline::Outcome<PciPath> parse_pci_path(const std::string& text);

}  // namespace softnic
