// SPDX-License-Identifier: Apache-2.0
//
// The PCI address of a device: four numbers, parsed from text and printed as text.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace beeline::topology {

struct PciAddress {
  std::uint32_t domain = 0;  // above 0xffff behind some host bridges
  std::uint8_t bus = 0;
  std::uint8_t device = 0;    // 0 to 31
  std::uint8_t function = 0;  // 0 to 7

  auto operator<=>(const PciAddress&) const = default;
};

// Accepts "0000:3b:00.0", and "3b:00.0" for domain 0, in upper or lower case.
std::optional<PciAddress> parse_pci_address(std::string_view text);

// "0000:3b:00.0", as the kernel writes it.
std::string to_string(const PciAddress& address);

}  // namespace beeline::topology
