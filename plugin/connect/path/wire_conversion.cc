// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/path/wire_conversion.h"

#include <cstring>

namespace beeline {

wire::PortSettings settings_of(const QpOptions& options, const GidPolicy& gid) {
  wire::PortSettings settings;
  settings.service_level = static_cast<std::int16_t>(options.service_level);
  settings.traffic_class = static_cast<std::int16_t>(options.traffic_class);
  settings.gid_index = gid.fixed_index;
  settings.roce_version = static_cast<std::uint8_t>(gid.roce_version);
  settings.family = gid.family;
  settings.gid_range = gid.range;
  return settings;
}

GidPolicy gid_policy(const wire::PortSettings& settings) {
  return {.fixed_index = settings.gid_index,
          .roce_version = settings.roce_version,
          .family = settings.family,
          .range = settings.gid_range};
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
