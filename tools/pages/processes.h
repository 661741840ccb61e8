// SPDX-License-Identifier: Apache-2.0
//
// The processes of this host that have a statistics page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "tools/pages/page_reader.h"
#include "tools/pages/trusted_pages.h"

namespace beeline::pages {

struct Process {
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;  // with the pid, it names the process for ever
  std::string host;
  Life life = Life::kRuns;
  std::optional<std::uint32_t> rank = {};   // as its launcher has set it
  std::optional<std::uint32_t> ranks = {};  // of its job; the same
  std::string job = {};                     // its name, or what its launcher says; empty: nothing
  std::uint64_t identity = 0;               // see SlotView::peer_identity; 0: none yet
  std::uint64_t slots_refused = 0;          // connections that the page does not show
  std::size_t blocked_threads = 0;          // if it was looked at: see blocked_threads.h
  std::vector<SlotView> connections;        // those that are not closed; some are not made yet
  std::vector<SlotView> closed = {};     // until another connection needs their place in the page
  std::vector<SlotView> failed = {};     // connections, open or closed, with their events
  std::vector<SlotView> listeners = {};  // where accept() has waited, and that are not closed
};

// Where the plugin puts its pages: BEELINE_STATS_DIR, or else /dev/shm.
std::string usual_directory();

struct Processes {
  std::vector<Process> all;  // by pid
  LeftOut left_out;
};

Outcome<Processes> read_processes(const std::string& directory);

}  // namespace beeline::pages
