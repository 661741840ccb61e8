// SPDX-License-Identifier: Apache-2.0
//
// What the statistics pages tell about the past of processes, of which some may have been killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "tools/pages/page_reader.h"
#include "tools/pages/trusted_pages.h"

namespace beeline::replay {

struct Recording {
  std::string host;
  std::string build;
  std::int64_t pid = 0;
  std::optional<std::uint32_t> rank = {};
  std::int64_t opened_ns = 0;              // by the clock of its host, as all other times
  std::int64_t opened_unix_ns = 0;         // the same moment
  std::int64_t alive_ns = 0;               // when it was last seen to run; 0: not known
  std::vector<SlotView> connections = {};  // also those that are closed

  // "rank 2 (pid 4711 on node7)"
  std::string name() const;
  std::string short_name() const;  // "rank 2", or "pid 4711 on node7"
};

// The process at the other end. Null: it is not among these.
const Recording* peer_of(const SlotView& connection, std::span<const Recording> recordings);

struct Recordings {
  std::vector<Recording> all;  // by host and pid
  pages::LeftOut left_out = {};
};

Outcome<Recording> read_recording(const std::string& path);
// Of all processes that have a page there.
Outcome<Recordings> read_recordings_in(const std::string& directory);

}  // namespace beeline::replay
