// SPDX-License-Identifier: Apache-2.0
//
// PCI addresses as sysfs writes them: where a device sits, and the order of devices.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace beeline {

struct PciAddress {
  std::uint32_t domain = 0;  // above 0xffff behind some host bridges
  std::uint32_t bus = 0;
  std::uint32_t device = 0;
  std::uint32_t function = 0;

  auto operator<=>(const PciAddress&) const = default;
};
// "0000:16:00.0"
std::optional<PciAddress> parse_pci_address(std::string_view text);

// The last directory of the path.
std::string_view base_name(std::string_view path) noexcept;

// The PCI function that a device directory belongs to: the path itself, or the nearest one above
// (a sub-function lies in its parent's directory). Empty when there is none.
std::string pci_function_of(std::string path);

}  // namespace beeline
