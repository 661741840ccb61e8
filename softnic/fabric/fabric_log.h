// SPDX-License-Identifier: Apache-2.0
// The log of a fabric: the file `log` in its directory, with a line for every command, every event
// of a port or device, and every fault that hit a work request. `softnic log` prints it. A line is
// appended by one write(2), so a process that dies leaves no partial line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "softnic/fabric/fabric.h"
#include "softnic/fabric/port_ref.h"

namespace softnic {

// At this size a last line says that the log is full.
inline constexpr std::int64_t kMaxLogBytes = std::int64_t{16} << 20;

// Appends "12.034567  h0/softnic0:1  down": seconds since the fabric was created, the place, and
// `words`, which become one line. Errors are ignored. Takes a few system calls.
void log_port(const Fabric& fabric, PortRef where, std::string_view words);
void log_device(const Fabric& fabric, std::uint32_t device, std::string_view words);
void log_fabric(const Fabric& fabric, std::string_view words);

std::string log_path(const Fabric& fabric);

}  // namespace softnic
