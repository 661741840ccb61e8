// SPDX-License-Identifier: Apache-2.0
// What happened to a fabric: the file `log` in its directory, one line for every command that was
// given, every event of a port or device that was told, every fault that struck. `softnic log`
// prints it. Any process may write and any may die: a line is appended by one write, so it is whole
// or not there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "softnic/fabric/fabric.h"
#include "softnic/fabric/port_ref.h"

namespace softnic {

// The log ends with a line that says so when it has grown to this.
inline constexpr std::int64_t kMaxLogBytes = std::int64_t{16} << 20;

// "12.034567  h0/softnic0:1  down": fabric time in seconds, where, and what. `words` is one line.
// Nothing fails: what cannot be noted is lost. Costs a few system calls.
void note(const Fabric& fabric, PortRef where, std::string_view words);
void note_device(const Fabric& fabric, std::uint32_t device, std::string_view words);
void note_fabric(const Fabric& fabric, std::string_view words);

std::string log_path(const Fabric& fabric);

}  // namespace softnic
