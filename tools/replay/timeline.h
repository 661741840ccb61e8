// SPDX-License-Identifier: Apache-2.0
//
// The events of all connections, in the order of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/clocks.h"
#include "tools/replay/recordings.h"

namespace beeline::replay {

// What a connection had moved since it was last looked at.
struct Moved {
  std::int64_t ns = 0;  // since then
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

struct Entry {
  std::int64_t unix_ns = 0;    // on the common time line; of a wait, when it has begun
  std::int64_t seen_ns = 0;    // the same, and of a wait, when it was noticed
  std::size_t process = 0;     // in the list that was given
  std::size_t connection = 0;  // of that process
  EventView event = {};        // with the time of its process
  std::optional<Moved> moved = {};
};

std::vector<Entry> timeline_of(std::span<const Recording> recordings,
                               std::span<const Placement> placements);

// "softnic0:1 to n2 (pid 4711) mlx5_0:1". Names of processes that are known have their rank.
std::string name_of(const SlotView& connection, std::span<const Recording> recordings);

// "moved 12 messages, 786.4 kB in 1.00 s"
std::string text_of(const Entry& entry);

// "04:13:59.123456", in UTC
std::string time_text(std::int64_t unix_ns);

// "786.4 kB"
std::string bytes_text(std::uint64_t bytes);

}  // namespace beeline::replay
