// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/port_facts.h"

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

}  // namespace

Result<PortReading> read_port_facts(const verbs::Api& api, const PortName& name,
                                    const std::string& sysfs_root) {
  const verbs::PortAttr port = BL_TRY(verbs::query_port(api, name.context, name.port));
  PortReading reading;
  reading.facts = {.state = port.attr.state,
                   .active_mtu = port.attr.active_mtu,
                   .lid = port.attr.lid,
                   .sm_lid = port.attr.sm_lid,
                   .lmc = port.attr.lmc,
                   .speed_mbps = speed_of(api, name, port, sysfs_root),
                   .pkeys = read_pkeys(api, name, port.attr.pkey_tbl_len),
                   .gids = read_gids(api, name, port.attr, sysfs_root)};
  reading.link_layer = port.attr.link_layer;
  reading.max_msg_bytes = port.attr.max_msg_sz;
  return reading;
}

}  // namespace beeline
