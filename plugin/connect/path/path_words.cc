// SPDX-License-Identifier: Apache-2.0
//
// Translations, one switch each.
#include "plugin/connect/path/path_words.h"

#include <algorithm>
#include <cstring>

namespace beeline {
namespace {

wire::GidType to_wire(GidType type) noexcept {
  switch (type) {
    case GidType::kIb: return wire::GidType::kIb;
    case GidType::kRoceV1: return wire::GidType::kRoceV1;
    case GidType::kRoceV2: return wire::GidType::kRoceV2;
  }
  return wire::GidType::kIb;
}

GidType to_device(wire::GidType type) noexcept {
  switch (type) {
    case wire::GidType::kIb: return GidType::kIb;
    case wire::GidType::kRoceV1: return GidType::kRoceV1;
    case wire::GidType::kRoceV2: return GidType::kRoceV2;
  }
  return GidType::kIb;
}

wire::Family to_wire(AddressFamily family) noexcept {
  switch (family) {
    case AddressFamily::kUnset: return wire::Family::kUnset;
    case AddressFamily::kIpv4: return wire::Family::kIpv4;
    case AddressFamily::kIpv6: return wire::Family::kIpv6;
  }
  return wire::Family::kUnset;
}

AddressFamily to_device(wire::Family family) noexcept {
  switch (family) {
    case wire::Family::kUnset: return AddressFamily::kUnset;
    case wire::Family::kIpv4: return AddressFamily::kIpv4;
    case wire::Family::kIpv6: return AddressFamily::kIpv6;
  }
  return AddressFamily::kUnset;
}

}  // namespace

wire::LinkLayer to_wire(LinkLayer layer) noexcept {
  switch (layer) {
    case LinkLayer::kInfiniBand: return wire::LinkLayer::kInfiniBand;
    case LinkLayer::kEthernet: return wire::LinkLayer::kEthernet;
  }
  return wire::LinkLayer::kEthernet;
}

wire::Transport to_wire(Transport transport) noexcept {
  switch (transport) {
    case Transport::kInfiniBand: return wire::Transport::kInfiniBand;
    case Transport::kRoce: return wire::Transport::kRoce;
    case Transport::kIwarp: return wire::Transport::kIwarp;
  }
  return wire::Transport::kRoce;
}

Transport to_device(wire::Transport transport) noexcept {
  switch (transport) {
    case wire::Transport::kInfiniBand: return Transport::kInfiniBand;
    case wire::Transport::kRoce: return Transport::kRoce;
    case wire::Transport::kIwarp: return Transport::kIwarp;
  }
  return Transport::kRoce;
}

std::vector<wire::GidEntry> to_wire(const std::vector<GidEntry>& table) {
  std::vector<wire::GidEntry> result;
  result.reserve(table.size());
  for (const GidEntry& entry : table) {
    result.push_back({.index = entry.index, .type = to_wire(entry.type), .gid = entry.gid});
  }
  return result;
}

std::vector<GidEntry> to_device(const std::vector<wire::GidEntry>& table) {
  std::vector<GidEntry> result;
  result.reserve(table.size());
  for (const wire::GidEntry& entry : table) {
    result.push_back(
        {.index = entry.index, .type = to_device(entry.type), .gid = entry.gid, .ndev = {}});
  }
  return result;
}

wire::Wishes wishes_of(const QpOptions& options, const GidPolicy& gid) {
  wire::Wishes wishes;
  wishes.service_level = static_cast<std::int16_t>(options.service_level);
  wishes.traffic_class = static_cast<std::int16_t>(options.traffic_class);
  wishes.pkey_index = options.pkey_index;
  wishes.gid_index = gid.fixed_index;
  wishes.roce_version = static_cast<std::uint8_t>(gid.roce_version);
  wishes.family = to_wire(gid.family);
  if (gid.range) {
    wishes.gid_range = {.base = gid.range->base,
                        .prefix = static_cast<std::uint8_t>(gid.range->prefix)};
  }
  return wishes;
}

GidPolicy gid_policy(const wire::Wishes& wishes) {
  GidPolicy policy{.fixed_index = wishes.gid_index,
                   .roce_version = wishes.roce_version,
                   .family = to_device(wishes.family),
                   .range = {}};
  if (wishes.gid_range) {
    policy.range = GidRange{.base = wishes.gid_range->base, .prefix = wishes.gid_range->prefix};
  }
  return policy;
}

wire::Ece to_wire(const ibv_ece& ece) noexcept {
  return {.vendor = ece.vendor_id, .options = ece.options, .mask = ece.comp_mask};
}

ibv_ece to_ibv(const wire::Ece& ece) noexcept {
  return {.vendor_id = ece.vendor, .options = ece.options, .comp_mask = ece.mask};
}

ibv_gid to_ibv(const Gid& gid) noexcept {
  ibv_gid result;
  static_assert(sizeof result.raw == sizeof gid);
  std::memcpy(result.raw, gid.data(), gid.size());
  return result;
}

}  // namespace beeline
