// SPDX-License-Identifier: Apache-2.0
// Identifies a port by indices, and converts that to and from text.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/problem.h"
#include "softnic/fabric/fabric.h"

namespace softnic {

struct PortRef {
  std::uint32_t device = 0;  // index into FabricHeader::devices
  std::uint32_t port = 0;    // index into DeviceRecord::ports, so port number minus one
};

inline PortRecord& port_at(const Fabric& fabric, PortRef where) {
  return fabric.header().devices[where.device].ports[where.port];
}

// Accepts "softnic0", "h0/softnic0" and "h0/softnic0:1". Without a host, the device name must be
// unique in the fabric; without a port, port 1 is meant.
beeline::Outcome<PortRef> find_port(const Fabric& fabric, const std::string& text);

std::string device_name(const Fabric& fabric, std::uint32_t device);  // "h0/softnic0"
std::string port_name(const Fabric& fabric, PortRef where);           // "h0/softnic0:1"

}  // namespace softnic
