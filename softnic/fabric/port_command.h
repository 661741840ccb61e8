// SPDX-License-Identifier: Apache-2.0
// What `softnic ctl` and tests can do to a port of a running fabric. Effective at once: every
// process reads the port record for every chunk it moves.
#pragma once

#include <cstdint>
#include <string>

#include "softnic/fabric/fabric.h"

namespace softnic {

struct PortRef {
  uint32_t device = 0;  // index into FabricHeader::devices
  uint32_t port = 0;    // index into DeviceRecord::ports, so port number minus one
};

struct PortCommand {
  enum class Kind { kDown, kUp, kRate, kLatency, kError, kCorrupt, kReset };
  Kind kind = Kind::kReset;
  uint64_t value = 0;   // bytes per second, nanoseconds, or N: the N-th work request from now
  uint32_t status = 0;  // ibv_wc_status of kError
};

// "down", "up", "rate=200M" (bytes/s, decimal k M G; "max"), "latency=50us" (ns us ms s),
// "error=STATUS@N" (STATUS as in IBV_WC_*, any case, e.g. retry_exc_err), "corrupt@N", "reset".
Outcome<PortCommand> parse_port_command(const std::string& text);

// "softnic0", "h0/softnic0", "h0/softnic0:1"; without a host the name must be unique; no port
// means 1.
Outcome<PortRef> find_port(const Fabric& fabric, const std::string& text);

void apply(const Fabric& fabric, PortRef port, const PortCommand& command);

}  // namespace softnic
