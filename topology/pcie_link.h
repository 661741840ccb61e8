// SPDX-License-Identifier: Apache-2.0
//
// A PCIe link: its rate, its lanes, and the bandwidth that results.
#pragma once

#include <cstdint>
#include <string>

namespace beeline::topology {

inline constexpr std::uint32_t kMaxPcieLanes = 32;

struct PcieLink {
  std::uint32_t mega_transfers =
      0;                    // a second and lane: 2500, 5000, 8000, 16000, 32000, 64000; 0: unknown
  std::uint32_t lanes = 0;  // 1 to 32; 0: unknown

  bool is_known() const noexcept { return mega_transfers != 0 && lanes != 0; }
  bool operator==(const PcieLink&) const = default;
};

// Payload in one direction, in GB/s (10^9 bytes), after the line code (8b/10b up to 5 GT/s,
// 128b/130b up to 32 GT/s, 242 of 256 bytes of a FLIT above) and before packet headers. 0 when
// unknown.
double gigabytes_per_second(const PcieLink& link) noexcept;

// The link with this bandwidth. Several combinations of rate and lanes have the same bandwidth; the
// one with the most lanes, up to 16, is returned. Unknown if there is none.
PcieLink link_that_carries(double gigabytes_per_second) noexcept;

// 1 to 7; 0 if PCIe does not have this rate.
int generation(const PcieLink& link) noexcept;

// "Gen4 x16"; "Gen? x16", "Gen4 x?" and "unknown" if something is missing.
std::string to_string(const PcieLink& link);

}  // namespace beeline::topology
