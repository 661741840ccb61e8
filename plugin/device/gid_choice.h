// SPDX-License-Identifier: Apache-2.0
//
// Which GID each end of a connection uses. Chosen for the pair, by the accepting side, which has
// both tables: two ends that choose each for itself may pick addresses of different subnets, or of
// different RoCE versions, that never reach each other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/problem.h"
#include "plugin/device/gid.h"

namespace beeline {

struct GidRange {
  Gid base = {};
  int prefix = 0;  // bits of the 128; an IPv4 range counts its 96 leading ones too

  bool contains(const Gid& gid) const noexcept { return common_prefix(base, gid) >= prefix; }
  bool operator==(const GidRange&) const = default;
};
// "10.0.0.0/8", "fd00::/16"; without a slash the one address. Empty text is no range.
Outcome<std::optional<GidRange>> parse_gid_range(std::string_view text);

// One side's wishes. They travel in the handshake with its table.
struct GidPolicy {
  int fixed_index = -1;  // >= 0: this place and no other, whatever the other wishes say
  int flid_index = -1;   // InfiniBand, both sides: the place to use where its GID has a FLID
  int roce_version = 0;  // 1 or 2: this and no other; 0: 2 where both have it, else 1
  AddressFamily family = AddressFamily::kUnset;  // preferred; unset: IPv4, else IPv6
  std::optional<GidRange> range = {};            // only addresses in it
};

struct GidSide {
  std::span<const GidEntry> table;
  GidPolicy policy;
  std::string_view who;  // for the error: "h0 mlx5_0 port 1"
};

struct GidPair {
  std::uint16_t local_index = 0;
  std::uint16_t remote_index = 0;
  bool grh = true;  // packets need a global route header: the is_global of both ends' paths
};

// For RoCE. In this order: what each side insists on (index, version, range), what can talk at all,
// RoCE v2, both addresses global, the wished families, the longest common prefix, the lowest
// places. The error is a text for people and names both sides.
Outcome<GidPair> choose_gids(const GidSide& local, const GidSide& remote);

// For InfiniBand: the fixed place, or that with a FLID, or place 0. A GRH only where the subnets
// differ.
Outcome<GidPair> choose_ib_gids(const GidSide& local, const GidSide& remote);

}  // namespace beeline
