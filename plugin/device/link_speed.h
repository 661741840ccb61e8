// SPDX-License-Identifier: Apache-2.0
//
// Link speed in Mbit/s, from what verbs or sysfs say.
#pragma once

#include <cstdint>
#include <string_view>

namespace beeline {

// Codes as in ibv_port_attr; speed_ex is 0 where the library does not know it. 0: unknown code.
std::uint32_t link_speed_mbps(std::uint8_t width, std::uint8_t speed, std::uint32_t speed_ex);
// The kernel's `rate` file: "400 Gb/sec (4X NDR)". 0 when it is something else.
std::uint32_t parse_rate_mbps(std::string_view text);

}  // namespace beeline
