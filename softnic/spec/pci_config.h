// SPDX-License-Identifier: Apache-2.0
// The 256 bytes of a PCI configuration space, as far as hwloc and lspci look: identity, class, the
// buses of a bridge, and the PCI Express capability with its link.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace softnic {

struct BridgeBuses {
  uint8_t primary = 0;
  uint8_t secondary = 0;
  uint8_t subordinate = 0;
};

struct ConfigFacts {
  uint16_t vendor = 0;
  uint16_t device = 0;
  uint32_t class_code = 0;
  uint8_t link_gen = 0;                 // 1: 2.5 GT/s ... 6: 64 GT/s
  std::optional<BridgeBuses> bridge{};  // an endpoint has none
};

std::array<uint8_t, 256> pci_config(const ConfigFacts& facts);

// "32.0 GT/s PCIe", as current_link_speed prints it.
const char* link_speed_text(uint8_t link_gen);

inline constexpr uint8_t kPciLinkWidth = 16;

}  // namespace softnic
