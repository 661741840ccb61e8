// SPDX-License-Identifier: Apache-2.0
//
// Brings the times of several hosts onto one time line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tools/replay/recordings.h"

namespace beeline::replay {

// How the clock of a process is placed on the common time line, which is unix time by the host of
// the first process.
struct Placement {
  std::int64_t shift_ns = 0;  // a time of the process plus this is on the common time line
  // By how much it may be wrong. None: its clock was not measured, and its host's unix time is
  // believed.
  std::optional<std::int64_t> error_ns = 0;
};

// Processes of one host have one clock. Others are placed by what their control channels have
// measured, by way of as many processes as it takes, with the least error.
std::vector<Placement> place_clocks(std::span<const Recording> recordings);

}  // namespace beeline::replay
