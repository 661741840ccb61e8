// SPDX-License-Identifier: Apache-2.0
//
// Where a device sits on the PCI bus: four numbers, read from and written as text.
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

// "0000:3b:00.0", and "3b:00.0" in domain 0, in capitals or not. Nothing else.
std::optional<PciAddress> parse_pci_address(std::string_view text);

// "0000:3b:00.0", as the kernel writes it.
std::string to_string(const PciAddress& address);

}  // namespace beeline::topology
