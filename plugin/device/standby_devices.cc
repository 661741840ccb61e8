// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/standby_devices.h"

#include <algorithm>
#include <tuple>

namespace beeline {
namespace {

// How many directories of sysfs both devices are below: the more, the nearer.
std::ptrdiff_t common_directories(const Device& a, const Device& b) {
  const auto [end, other] = std::ranges::mismatch(a.pci_path, b.pci_path);
  return std::count(a.pci_path.begin(), end, '/');
}

// Devices at the same distance begin with the one that comes next in the table, so that those of
// several devices that fail together do not all choose the same one.
auto order_for(const Device& own, std::size_t count) {
  return [&own, count](const Device* other) {
    const auto steps =
        (static_cast<std::size_t>(other->index) + count - static_cast<std::size_t>(own.index)) %
        count;
    return std::tuple(other->numa_node != own.numa_node, -common_directories(own, *other), steps);
  };
}

}  // namespace

StandbyDevices::StandbyDevices(std::span<const Device> all) : by_index_(all.size()) {
  for (const Device& own : all) {
    std::vector<const Device*>& others = by_index_[static_cast<std::size_t>(own.index)];
    for (const Device& other : all) {
      const bool is_of_same_kind =
          other.transport == own.transport && other.link_layer == own.link_layer;
      if (other.index != own.index && is_of_same_kind) others.push_back(&other);
    }
    std::ranges::sort(others, {}, order_for(own, all.size()));
  }
}

}  // namespace beeline
