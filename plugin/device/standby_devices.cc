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

auto distance(const Device& own, const Device& other) {
  return std::tuple(other.numa_node != own.numa_node, -common_directories(own, other));
}

// Of devices at the same distance, the first choice of each device is another one, so that several
// that fail together do not all choose the same. Those next to it may be merged with it: the choice
// is half of them away.
void spread(const Device& own, std::span<const Device*> alike) {
  const auto before = static_cast<std::size_t>(
      std::ranges::count_if(alike, [&](const Device* one) { return one->index < own.index; }));
  const std::size_t first = (before + alike.size() / 2) % alike.size();
  std::rotate(alike.begin(), alike.begin() + static_cast<std::ptrdiff_t>(first), alike.end());
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
    std::ranges::stable_sort(others, {}, [&](const Device* one) { return distance(own, *one); });
    for (auto begin = others.begin(); begin != others.end();) {
      const auto end = std::find_if(begin, others.end(), [&](const Device* one) {
        return distance(own, *one) != distance(own, **begin);
      });
      spread(own, {begin, end});
      begin = end;
    }
  }
}

}  // namespace beeline
