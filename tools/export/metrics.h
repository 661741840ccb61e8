// SPDX-License-Identifier: Apache-2.0
//
// All metrics of `beeline export`, from what was read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/export/port_counters.h"
#include "tools/export/totals.h"
#include "tools/pages/processes.h"

namespace beeline::exporter {

// How the totals have come about.
enum class Mode : std::uint8_t {
  kOnce,     // one look: the processes that run at this moment
  kRepeats,  // since this process began, with those that have ended
};

struct State {
  std::string host;
  std::string protocol;  // the versions that this build speaks: "2-3"
  Mode mode = Mode::kOnce;
  std::int64_t now_ns = 0;
  pages::Processes processes = {};
  Totals totals = {};
  std::vector<PortReading> ports = {};
};

std::string text_of(const State& state);

}  // namespace beeline::exporter
