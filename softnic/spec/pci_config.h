// SPDX-License-Identifier: Apache-2.0
// Builds the 256 bytes of a PCI configuration space with the fields that hwloc and lspci read:
// identity, class, the buses of a bridge, and the PCI Express capability with its link.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace softnic {

struct BridgeBuses {
  std::uint8_t primary = 0;
  std::uint8_t secondary = 0;
  std::uint8_t subordinate = 0;
};

struct ConfigFacts {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0;
  std::uint8_t link_gen = 0;            // 1: 2.5 GT/s ... 6: 64 GT/s
  std::optional<BridgeBuses> bridge{};  // an endpoint has none
};

std::array<std::uint8_t, 256> pci_config(const ConfigFacts& facts);

// "32.0 GT/s PCIe", as current_link_speed prints it.
const char* link_speed_text(std::uint8_t link_gen);

inline constexpr std::uint8_t kPciLinkWidth = 16;

}  // namespace softnic
