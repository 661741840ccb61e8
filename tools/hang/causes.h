// SPDX-License-Identifier: Apache-2.0
//
// Follows the waits of connections from process to process, to those that the others wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tools/pages/processes.h"

namespace beeline::hang {

// A connection that waits.
struct WaitingEnd {
  std::size_t process = 0;                     // in the list that was given
  std::size_t connection = 0;                  // of that process
  std::optional<std::size_t> peer;             // the process at the other end, if it has a page
  std::optional<std::size_t> peer_connection;  // of that process
  std::int64_t ns = 0;
};

enum class Reason : std::uint8_t {
  kStopped,       // the process is stopped
  kEnded,         // it has ended
  kCallsNothing,  // it has open requests, and calls nothing for them
  kNoReceive,     // it posts no receive, and waits for nothing
  kNoSend,        // it sends nothing, and waits for nothing
  kLost,          // both ends do their part, and packets do not arrive
  kNoPath,        // no path of the connection works
  kElsewhere,     // the next process to look at is on another host
  kCircle,        // processes wait for one another
};

struct Cause {
  Reason reason;
  std::optional<std::size_t> process;  // that causes it; none: it is between two, or elsewhere
  WaitingEnd example;                  // the connection that has waited longest for this
  std::size_t waiting = 0;  // how many processes wait for it, at once or by way of others
};

struct Analysis {
  std::vector<WaitingEnd> waits;  // that last at least as long as was asked for
  std::vector<Cause> causes;      // that with the most processes first
};

Analysis find_causes(std::span<const pages::Process> processes, std::int64_t now_ns,
                     std::int64_t least_ns);

}  // namespace beeline::hang
