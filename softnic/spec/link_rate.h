// SPDX-License-Identifier: Apache-2.0
// The width and speed that a port of a given Gb/s reports, in ibv_port_attr and in the sysfs file
// ports/N/rate. Both read this table, so they agree.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace softnic {

struct LinkRate {
  std::uint32_t gbps;
  const char* text;           // ports/N/rate, without the newline
  std::uint8_t active_width;  // 1: 1X, 2: 4X, 4: 8X, 8: 12X, 16: 2X
  std::uint8_t active_speed;  // 1: SDR, 4: QDR, 32: EDR, 64: HDR, 128: NDR
};

std::span<const LinkRate> link_rates();

// The row for `gbps`, or nullptr if no port has this speed.
const LinkRate* find_link_rate(std::uint32_t gbps);

}  // namespace softnic
