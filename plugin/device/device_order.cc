// SPDX-License-Identifier: Apache-2.0
//
// Sorts devices into an order that is the same at every start, and numbers the ports of each card.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/natural_order.h"
#include "plugin/device/device_scan.h"
#include "plugin/device/sysfs.h"
#include "topology/pci_address.h"

namespace beeline {
namespace {

// Devices without a PCI address are last.
auto place_of(const Device& device) {
  const auto address = topology::parse_pci_address(base_name(device.pci_path));
  return std::tuple(!address.has_value(), address.value_or(topology::PciAddress{}), device.port);
}

bool is_before(const Device& a, const Device& b) {
  const auto place_a = place_of(a);
  const auto place_b = place_of(b);
  return place_a != place_b ? place_a < place_b : natural_less(a.ibdev, b.ibdev);
}

}  // namespace

void sort_devices(std::vector<Device>& devices) { std::ranges::stable_sort(devices, is_before); }

void number_ports(std::vector<Device>& devices) {
  std::map<std::uint64_t, std::string> cards;     // by GUID, the card's path
  std::set<std::pair<std::uint64_t, int>> taken;  // GUID and port
  for (Device& device : devices) {
    const std::string& card = device.card_path.empty() ? device.ibdev : device.card_path;
    while (device.guid == 0 || cards.try_emplace(device.guid, card).first->second != card) {
      device.guid += 1 + std::hash<std::string>{}(card) % UINT32_MAX;
    }
    device.card_port = device.port;
    while (!taken.insert({device.guid, device.card_port}).second) ++device.card_port;
  }
}

}  // namespace beeline
