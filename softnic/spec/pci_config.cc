// SPDX-License-Identifier: Apache-2.0
// The offsets are from the PCI Local Bus specification 3.0, chapter 6, and PCI Express Base 7.5.3.
#include "softnic/spec/pci_config.h"

namespace softnic {
namespace {

constexpr std::size_t kExpressCap = 0x40;

void put16(std::array<std::uint8_t, 256>& config, std::size_t at, std::uint32_t value) {
  config[at] = static_cast<std::uint8_t>(value & 0xff);
  config[at + 1] = static_cast<std::uint8_t>(value >> 8 & 0xff);
}

}  // namespace

std::array<std::uint8_t, 256> pci_config(const ConfigFacts& facts) {
  std::array<std::uint8_t, 256> config{};
  put16(config, 0x00, facts.vendor);
  put16(config, 0x02, facts.device);
  put16(config, 0x04, 0x0006);  // memory space, bus master
  put16(config, 0x06, 0x0010);  // has a capability list
  config[0x09] = static_cast<std::uint8_t>(facts.class_code & 0xff);
  put16(config, 0x0a, facts.class_code >> 8);
  if (facts.bridge) {
    config[0x0e] = 1;  // header type: PCI-to-PCI bridge
    config[0x18] = facts.bridge->primary;
    config[0x19] = facts.bridge->secondary;
    config[0x1a] = facts.bridge->subordinate;
  }
  config[0x34] = kExpressCap;
  config[kExpressCap] = 0x10;  // capability id: PCI Express
  const std::uint32_t link = std::uint32_t{kPciLinkWidth} << 4 | facts.link_gen;
  put16(config, kExpressCap + 0x0c, link);  // link capabilities
  put16(config, kExpressCap + 0x12, link);  // link status
  return config;
}

const char* link_speed_text(std::uint8_t link_gen) {
  switch (link_gen) {
    case 1: return "2.5 GT/s PCIe";
    case 2: return "5.0 GT/s PCIe";
    case 3: return "8.0 GT/s PCIe";
    case 4: return "16.0 GT/s PCIe";
    case 5: return "32.0 GT/s PCIe";
    case 6: return "64.0 GT/s PCIe";
    default: return "Unknown";
  }
}

}  // namespace softnic
