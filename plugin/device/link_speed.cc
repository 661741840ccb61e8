// SPDX-License-Identifier: Apache-2.0
//
// The speed of a link: its width times the data rate of a lane.
#include <cmath>
#include <cstdlib>
#include <string>

#include "plugin/device/port_facts.h"

namespace beeline {
namespace {

std::uint32_t lanes_of(std::uint8_t width) noexcept {
  switch (width) {
    case 1: return 1;
    case 2: return 4;
    case 4: return 8;
    case 8: return 12;
    case 16: return 2;
    default: return 0;
  }
}

// Each code is one bit. The names' rates are what people know (FDR x4 is "56 Gb/s").
std::uint32_t lane_mbps_of(std::uint32_t speed) noexcept {
  switch (speed) {
    case 1: return 2'500;      // SDR
    case 2: return 5'000;      // DDR
    case 4:                    // QDR
    case 8: return 10'000;     // FDR10
    case 16: return 14'000;    // FDR
    case 32: return 25'000;    // EDR
    case 64: return 50'000;    // HDR
    case 128: return 100'000;  // NDR
    case 256: return 200'000;  // XDR
    default: return 0;
  }
}

}  // namespace

std::uint32_t link_speed_mbps(std::uint8_t width, std::uint8_t speed, std::uint32_t speed_ex) {
  return lanes_of(width) * lane_mbps_of(speed_ex != 0 ? speed_ex : speed);
}

std::uint32_t parse_rate_mbps(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double gbps = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || std::string_view(end).substr(0, 3) != " Gb") return 0;
  if (!(gbps > 0) || gbps > 1e6) return 0;
  return static_cast<std::uint32_t>(std::lround(gbps * 1000));
}

}  // namespace beeline
