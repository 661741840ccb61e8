// SPDX-License-Identifier: Apache-2.0
// Scripts of faults: lines with a time, a port and commands.
//   # the cable of a rail is pulled for a moment
//   +100ms  h0/softnic0 down
//   +20ms   h0/softnic0 up loss=1%
//   @1.5s   h0/softnic1 remove
// "+" counts from the line before, "@" from the start of the script. A line without a time has the
// time of the line before.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "softnic/fabric/port_command.h"

namespace softnic {

struct TimedCommand {
  std::uint64_t at_ns = 0;  // since the start of the script
  TargetedCommand command;
};

// Parses a script. Commands are in order of time. The error has a line "FILE:NUMBER: reason" for
// each bad line of the script.
beeline::Outcome<std::vector<TimedCommand>> read_script(const Fabric& fabric,
                                                        const std::string& text,
                                                        const std::string& file_name);

// Waits until `at_ns` after the start. Returns false to stop the script.
using Wait = std::function<bool(std::uint64_t at_ns)>;

// Executes the commands, each at its time. Returns how many were executed.
std::size_t play(const Fabric& fabric, const std::vector<TimedCommand>& script, const Wait& wait);

}  // namespace softnic
