// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/net_devices.h"

#include <algorithm>
#include <string_view>

#include "plugin/wire/limits.h"

namespace beeline {
namespace {

// NCCL keeps names in 256 bytes and identifies a device by its name.
constexpr std::size_t kLongestName = 200;
constexpr std::string_view kPrefix = "beeline_";

// "beeline_mlx5_0+mlx5_1": `index` replaces the other members where the name would be too long.
std::string name_of(int index, std::span<const Device* const> members) {
  std::string name = members.front()->name;
  for (const Device* const member : members.subspan(1)) {
    std::string_view own = member->name;
    if (own.starts_with(kPrefix)) own.remove_prefix(kPrefix.size());
    name += '+';
    name += own;
  }
  if (name.size() <= kLongestName) return name;
  return members.front()->name + "+" + std::to_string(members.size() - 1) + "_v" +
         std::to_string(index);
}

NetDevice make_device(std::size_t place, std::vector<const Device*> members,
                      std::vector<int> merged) {
  NetDevice device;
  device.index = static_cast<int>(place);
  device.name = name_of(device.index, members);
  for (const Device* const member : members) {
    device.speed_mbps += static_cast<int>(member->facts.speed_mbps);
  }
  device.members = std::move(members);
  device.merged = std::move(merged);
  return device;
}

std::string listed(std::span<const int> indices) {
  std::string text;
  for (const int index : indices) text += (text.empty() ? "" : ", ") + std::to_string(index);
  return text;
}

// One connection needs the same kind of queue pairs and addresses on all of its rails.
std::string why_incompatible(const std::vector<const Device*>& members) {
  const Device& first = *members.front();
  for (const Device* const other : members) {
    if (other->transport == first.transport) continue;
    return label(first) + " is " + to_string(first.transport) + " and " + label(*other) + " is " +
           to_string(other->transport) + "; merge devices of one kind";
  }
  if (members.size() > wire::kMaxRails) {
    return "they have " + std::to_string(members.size()) +
           " ports, and a connection uses at most " + std::to_string(wire::kMaxRails) +
           "; merge fewer";
  }
  return {};
}

}  // namespace

std::string describe(const NetDevice& device) {
  std::string text = "device " + std::to_string(device.index) + ", " + device.name + ", " +
                     std::to_string(device.speed_mbps / 1000) + "G:";
  for (const Device* const member : device.members) {
    text += (member == device.members.front() ? " " : ", ") + label(*member);
  }
  return text;
}

NetDevices::NetDevices(const std::vector<std::vector<const Device*>>& groups)
    : first_count_(std::min(groups.size(), kMost)) {
  for (std::size_t i = 0; i < first_count_; ++i) add(groups[i], {static_cast<int>(i)});
}

const NetDevice* NetDevices::find(int index) const noexcept {
  if (index < 0 || static_cast<std::size_t>(index) >= count()) return nullptr;
  return all_[static_cast<std::size_t>(index)].get();
}

const NetDevice* NetDevices::with_rails(RailDevices rails) const noexcept {
  const std::span all(all_.data(), count());
  const auto it = std::ranges::find_if(
      all, [&](const auto& device) { return device->members.data() == rails.data(); });
  return it == all.end() ? nullptr : it->get();
}

// The ports of first devices, given by their numbers.
Outcome<std::vector<const Device*>> NetDevices::ports_of(std::span<const int> indices) const {
  const std::string what = "devices " + listed(indices) + " cannot be merged: ";
  std::vector<const Device*> ports;
  for (const int index : indices) {
    if (index < 0 || static_cast<std::size_t>(index) >= first_count_) {
      return fail(Problem(what + "there is no unmerged device " + std::to_string(index) +
                          "; the highest number is " + std::to_string(first_count_ - 1)));
    }
    if (std::ranges::count(indices, index) > 1) {
      return fail(Problem(what + std::to_string(index) + " is named twice"));
    }
    const NetDevice& part = *find(index);
    ports.insert(ports.end(), part.members.begin(), part.members.end());
  }
  if (ports.empty()) return fail(Problem("no device can be made of 0 devices"));
  const std::string why = why_incompatible(ports);
  if (!why.empty()) return fail(Problem(Errc::kUnsupported, what + why));
  return ports;
}

Outcome<const NetDevice*> NetDevices::merge(std::span<const int> indices) {
  std::vector<const Device*> members = BL_TRY(ports_of(indices));
  const std::lock_guard lock(mutex_);
  const auto known = std::span(all_).first(count()).subspan(first_count_);
  const auto it = std::ranges::find_if(
      known, [&](const auto& device) { return std::ranges::equal(device->merged, indices); });
  if (it != known.end()) return it->get();
  if (count() == kMost) {
    return fail(Problem(Errc::kUnsupported, "devices " + listed(indices) +
                                                " cannot be merged: there are " +
                                                std::to_string(kMost) + " devices already"));
  }
  return add(std::move(members), {indices.begin(), indices.end()});
}

const NetDevice* NetDevices::add(std::vector<const Device*> members, std::vector<int> merged) {
  const std::size_t place = count();
  all_[place] =
      std::make_unique<const NetDevice>(make_device(place, std::move(members), std::move(merged)));
  count_.store(place + 1, std::memory_order_release);
  return all_[place].get();
}

}  // namespace beeline
