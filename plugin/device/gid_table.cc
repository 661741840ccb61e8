// SPDX-License-Identifier: Apache-2.0
//
// Reads a port's GID table. A GID has a value, a type and a network interface; whether verbs or
// sysfs provides each depends on the age of the library and of the kernel.
#include <net/if.h>

#include <algorithm>
#include <cstring>

#include "plugin/device/port_facts.h"
#include "plugin/device/sysfs.h"
#include "plugin/verbs/query.h"

namespace beeline {
namespace {

Gid bytes_of(const ibv_gid& raw) noexcept {
  Gid gid;
  std::memcpy(gid.data(), raw.raw, gid.size());
  return gid;
}

GidType type_of(std::uint32_t raw) noexcept {
  switch (raw) {
    case IBV_GID_TYPE_ROCE_V1: return GidType::kRoceV1;
    case IBV_GID_TYPE_ROCE_V2: return GidType::kRoceV2;
    default: return GidType::kIb;
  }
}

std::string attribute(const PortName& name, const std::string& root, const char* kind, int index) {
  return read_line(port_dir(root, name.ibdev, name.port) + "/gid_attrs/" + kind + "/" +
                   std::to_string(index));
}

// The kernel knows one word for IB and RoCE v1.
GidType type_from_sysfs(const std::string& text, bool is_ethernet) noexcept {
  if (text == "RoCE v2") return GidType::kRoceV2;
  return is_ethernet ? GidType::kRoceV1 : GidType::kIb;
}

// By number where verbs gives one. It is of the caller's network namespace, sysfs' name is not.
std::string interface_of(const PortName& name, const std::string& root, int index,
                         std::uint32_t ifindex) {
  char text[IF_NAMESIZE];
  if (ifindex != 0 && ::if_indextoname(ifindex, text) != nullptr) return text;
  return attribute(name, root, "ndevs", index);
}

// Room for the tables of all ports: the call reads the whole device.
std::size_t room_needed(const verbs::Api& api, const PortName& name, const ibv_port_attr& port) {
  const auto device = verbs::query_device(api, name.context);
  std::size_t room = 0;
  for (int i = 1; i <= (device ? device->phys_port_cnt : 0); ++i) {
    const auto attr = verbs::query_port(api, name.context, static_cast<std::uint8_t>(i));
    if (attr) room += static_cast<std::size_t>(std::max(attr->attr.gid_tbl_len, 0));
  }
  return std::max(room, static_cast<std::size_t>(std::max(port.gid_tbl_len, 0)));
}

std::vector<GidEntry> pick_port(const std::vector<ibv_gid_entry>& raw, const PortName& name,
                                const std::string& root) {
  std::vector<GidEntry> entries;
  for (const ibv_gid_entry& entry : raw) {
    if (entry.port_num != name.port || entry.gid_index >= kUsableGids) continue;
    const int index = static_cast<int>(entry.gid_index);
    entries.push_back({.index = static_cast<std::uint16_t>(index),
                       .type = type_of(entry.gid_type),
                       .gid = bytes_of(entry.gid),
                       .ndev = interface_of(name, root, index, entry.ndev_ifindex)});
  }
  std::ranges::sort(entries, {}, &GidEntry::index);
  return entries;
}

std::vector<GidEntry> read_place_by_place(const verbs::Api& api, const PortName& name,
                                          const ibv_port_attr& port, const std::string& root) {
  const bool is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  std::vector<GidEntry> entries;
  for (int index = 0; index < std::min(port.gid_tbl_len, kUsableGids); ++index) {
    const auto raw = verbs::query_gid(api, name.context, name.port, index);
    if (!raw || is_zero(bytes_of(*raw))) continue;
    entries.push_back({.index = static_cast<std::uint16_t>(index),
                       .type = type_from_sysfs(attribute(name, root, "types", index), is_ethernet),
                       .gid = bytes_of(*raw),
                       .ndev = attribute(name, root, "ndevs", index)});
  }
  return entries;
}

}  // namespace

std::vector<GidEntry> read_gids(const verbs::Api& api, const PortName& name,
                                const ibv_port_attr& port, const std::string& sysfs_root) {
  const auto table = verbs::query_gid_table(api, name.context, room_needed(api, name, port));
  if (table) return pick_port(*table, name, sysfs_root);
  return read_place_by_place(api, name, port, sysfs_root);
}

}  // namespace beeline
