// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/port_facts.h"

#include <cmath>
#include <cstdlib>

#include "plugin/device/sysfs.h"
#include "plugin/verbs/query.h"

namespace beeline {
namespace {

// The effective speed if the library reports it, otherwise the link's, otherwise that of sysfs.
std::uint32_t speed_of(const verbs::Api& api, const PortName& name, const verbs::PortAttr& port,
                       const std::string& sysfs_root) {
  const auto effective = verbs::query_port_speed(api, name.context, name.port);
  if (effective && *effective > 0 && *effective <= UINT32_MAX) {
    return static_cast<std::uint32_t>(*effective);
  }
  const std::uint32_t link =
      link_speed_mbps(port.attr.active_width, port.attr.active_speed, port.active_speed_ex);
  if (link != 0) return link;
  return parse_rate_mbps(read_line(port_dir(sysfs_root, name.ibdev, name.port) + "/rate"));
}

std::vector<std::uint16_t> read_pkeys(const verbs::Api& api, const PortName& name,
                                      std::uint16_t length) {
  std::vector<std::uint16_t> keys;
  for (int index = 0; index < length; ++index) {
    const auto key = verbs::query_pkey(api, name.context, name.port, index);
    keys.push_back(key ? *key : 0);
  }
  while (!keys.empty() && keys.back() == 0) keys.pop_back();
  return keys;
}

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

Result<PortReading> read_port_facts(const verbs::Api& api, const PortName& name,
                                    const std::string& sysfs_root) {
  const verbs::PortAttr port = BL_TRY(verbs::query_port(api, name.context, name.port));
  PortReading reading;
  reading.facts = {.state = port.attr.state,
                   .active_mtu = port.attr.active_mtu,
                   .lid = port.attr.lid,
                   .speed_mbps = speed_of(api, name, port, sysfs_root),
                   .pkeys = read_pkeys(api, name, port.attr.pkey_tbl_len),
                   .gids = read_gids(api, name, port.attr, sysfs_root)};
  reading.link_layer = port.attr.link_layer;
  reading.max_msg_bytes = port.attr.max_msg_sz;
  return reading;
}

// The width of a link times the data rate of a lane.
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
