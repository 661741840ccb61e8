// SPDX-License-Identifier: Apache-2.0
//
// Recordings as text.
#pragma once

#include <span>
#include <string>

#include "tools/replay/clocks.h"
#include "tools/replay/recordings.h"
#include "tools/replay/timeline.h"

namespace beeline::replay {

// What is written. The clocks and the timeline are those of the recordings.
struct Story {
  std::span<const Recording> recordings;
  std::span<const Placement> placements;
  std::span<const Entry> timeline;
  std::size_t width = 100;  // columns of text
};

// By process and connection.
std::string text_by_connection(const Story& story);
// In the order of time.
std::string text_by_time(const Story& story);
// A line of JSON for each event, in the order of time.
std::string json_lines(const Story& story);

}  // namespace beeline::replay
