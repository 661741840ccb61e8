// SPDX-License-Identifier: Apache-2.0
//
// An order of devices that is the same at every start, and GUIDs that tell them apart.
#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "plugin/base/natural_order.h"
#include "plugin/device/device_scan.h"
#include "plugin/device/pci_path.h"
#include "topology/pci_address.h"

namespace beeline {
namespace {

// Devices without an address stand last.
auto place_of(const Device& device) {
  const auto address = topology::parse_pci_address(base_name(device.pci_path));
  return std::tuple(!address.has_value(), address.value_or(topology::PciAddress{}), device.port);
}

bool stands_before(const Device& a, const Device& b) {
  const auto place_a = place_of(a);
  const auto place_b = place_of(b);
  return place_a != place_b ? place_a < place_b : natural_less(a.ibdev, b.ibdev);
}

}  // namespace

void sort_devices(std::vector<Device>& devices) {
  std::ranges::stable_sort(devices, stands_before);
}

void make_guids_unique(std::vector<Device>& devices) {
  std::set<std::pair<std::uint64_t, std::uint8_t>> seen;
  for (Device& device : devices) {
    while (!seen.insert({device.guid, device.port}).second || device.guid == 0) {
      device.guid += 1 + (std::hash<std::string>{}(device.ibdev) & 0xffffffff);
    }
  }
}

}  // namespace beeline
