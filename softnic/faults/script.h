// SPDX-License-Identifier: Apache-2.0
// Scripts of faults: commands with times, one line each.
//   # the cable of a rail is pulled for a moment
//   +100ms  h0/softnic0 down
//   +20ms   h0/softnic0 up loss=1%
//   @1.5s   h0/softnic1 remove
// "+" counts from the line before, "@" from the start of the script; a line without a time belongs
// to the one before.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "softnic/fabric/port_command.h"

namespace softnic {

struct TimedCommand {
  std::uint64_t at_ns = 0;  // since the script started
  TargetedCommand command;
};

// Everything in order of time, or every bad line as "FILE:NUMBER: reason", one a line.
beeline::Outcome<std::vector<TimedCommand>> read_script(const Fabric& fabric,
                                                        const std::string& text,
                                                        const std::string& file_name);

// Waits until so long after the start. False: stop here.
using Wait = std::function<bool(std::uint64_t at_ns)>;

// Gives the orders, each at its time. Returns how many were given.
std::size_t play(const Fabric& fabric, const std::vector<TimedCommand>& script, const Wait& wait);

}  // namespace softnic
