// SPDX-License-Identifier: Apache-2.0
//
// Chooses the GIDs of a connection. The accepting side chooses both, because it has both tables. If
// each end chose its own, they could choose addresses of different subnets or RoCE versions, which
// cannot reach each other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "common/base/problem.h"
#include "plugin/device/gid.h"

namespace beeline {

// Parses "10.0.0.0/8", "fd00::/16", or a single address. Nothing for an empty text.
Outcome<std::optional<GidRange>> parse_gid_range(std::string_view text);

// The settings of one side. The handshake sends them together with its GID table.
struct GidPolicy {
  int fixed_index = -1;  // >= 0: only this entry; the other settings are ignored
  int flid_index = -1;   // InfiniBand, both sides: the entry to use if its GID has a FLID
  int roce_version =
      0;  // 1 or 2: only this version; 0: version 2 if both sides have it, otherwise 1
  AddressFamily family = AddressFamily::kUnset;  // preferred; unset: IPv4, then IPv6
  std::optional<GidRange> range = {};            // only addresses in this range
};

struct GidSide {
  std::span<const GidEntry> table;
  GidPolicy policy;
  std::string_view who;  // for the error: "h0 mlx5_0 port 1"
};

struct GidPair {
  std::uint16_t local_index = 0;
  std::uint16_t remote_index = 0;
  bool grh = true;  // packets need a global route header (is_global in the address vector)
};

// For RoCE. The criteria are, in this order: the fixed settings of each side (index, version,
// range); the same version and address family; RoCE v2; both addresses global; the preferred
// families; the longest common prefix; the lowest indexes. The error names both sides.
Outcome<GidPair> choose_gids(const GidSide& local, const GidSide& remote);

// For InfiniBand: the fixed entry, or the one with a FLID, or entry 0. A GRH only if the subnets
// differ.
Outcome<GidPair> choose_ib_gids(const GidSide& local, const GidSide& remote);

}  // namespace beeline
