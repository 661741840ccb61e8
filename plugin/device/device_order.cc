// SPDX-License-Identifier: Apache-2.0
//
// An order of devices that is the same at every start, and GUIDs that tell them apart.
#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <utility>

#include "plugin/device/device_scan.h"
#include "plugin/device/pci_address.h"

namespace beeline {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// A name with its trailing number apart, so that mlx5_2 stands before mlx5_10.
std::pair<std::string_view, std::uint64_t> split_name(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && is_digit(name[end - 1]) && name.size() - end < 18) --end;
  std::uint64_t number = 0;
  for (const char digit : name.substr(end)) {
    number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return {name.substr(0, end), number};
}

// Devices without an address stand last.
auto key_of(const Device& device) {
  const auto address = parse_pci_address(base_name(device.pci_path));
  return std::tuple(!address.has_value(), address.value_or(PciAddress{}), device.port,
                    split_name(device.ibdev));
}

}  // namespace

void sort_devices(std::vector<Device>& devices) {
  std::ranges::stable_sort(devices,
                           [](const Device& a, const Device& b) { return key_of(a) < key_of(b); });
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
