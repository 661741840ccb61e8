// SPDX-License-Identifier: Apache-2.0
//
// A directory in sysfs names all PCIe bridges above a card, so the ports below one bridge are those
// whose directories begin alike. Groups are formed below the lowest bridges first, and what is left
// over there is grouped one level higher.
#include "plugin/device/nearest_groups.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "common/check/assert.h"

namespace beeline {
namespace {

using Group = std::vector<const Device*>;

std::size_t depth_of(const Device& device) {
  return static_cast<std::size_t>(std::ranges::count(device.card_path, '/'));
}

// The first `depth` components of an absolute path; all of it if it has fewer.
std::string_view upper_part(std::string_view path, std::size_t depth) {
  std::size_t end = 0;
  for (std::size_t level = 0; level < depth; ++level) {
    end = path.find('/', end + 1);
    if (end == std::string_view::npos) return path;
  }
  return path.substr(0, end);
}

// Moves as many full groups as there are among ports that share their path up to `depth`.
void form_groups(Group& rest, std::size_t depth, std::size_t size, std::vector<Group>& groups) {
  for (std::size_t first = 0; first < rest.size();) {
    const std::string_view part = upper_part(rest[first]->card_path, depth);
    Group group;
    for (const Device* const device : rest) {
      if (group.size() < size && upper_part(device->card_path, depth) == part) {
        group.push_back(device);
      }
    }
    if (group.size() < size) {
      ++first;
      continue;
    }
    std::erase_if(rest, [&](const Device* device) {
      return std::ranges::find(group, device) != group.end();
    });
    groups.push_back(std::move(group));
    first = 0;
  }
}

// `rest` are ports that may be merged with each other.
void divide(Group rest, std::size_t most, std::vector<Group>& groups) {
  const std::size_t wanted = (rest.size() + most - 1) / most;
  const std::size_t size = (rest.size() + wanted - 1) / wanted;
  std::size_t depth = 0;
  for (const Device* const device : rest) depth = std::max(depth, depth_of(*device));
  for (std::size_t level = depth + 1; level-- > 0;) form_groups(rest, level, size, groups);
  BL_ASSERT(rest.size() < size,
            "at level 0 all paths are alike, so that less than a group is left");
  if (!rest.empty()) groups.push_back(std::move(rest));
}

// The device filter may number the rails of a fabric.
auto place_in_group(const Device* device) {
  return std::tuple(device->rail < 0, device->rail, device->index);
}

}  // namespace

std::vector<Group> group_nearest(std::span<const Device> devices, std::size_t most) {
  std::map<std::pair<int, Transport>, Group> classes;  // of ports that may be merged
  for (const Device& device : devices) {
    classes[{device.numa_node, device.transport}].push_back(&device);
  }
  std::vector<Group> groups;
  for (auto& [kind, members] : classes) {
    divide(std::move(members), std::max<std::size_t>(most, 1), groups);
  }
  std::ranges::sort(groups, {}, [](const Group& group) { return group.front()->index; });
  for (Group& group : groups) std::ranges::sort(group, {}, place_in_group);
  return groups;
}

}  // namespace beeline
