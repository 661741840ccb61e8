// SPDX-License-Identifier: Apache-2.0
//
// Follows the waits of connections from process to process, to those that the others wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "tools/hang/deaths.h"
#include "tools/hang/unmade.h"
#include "tools/pages/processes.h"

namespace beeline::hang {

// A connection that waits, or a listener.
struct WaitingEnd {
  std::size_t process = 0;     // in the list that was given
  std::size_t connection = 0;  // of that process: in its `connections`, or in its `listeners`
  // The process at the other end, if it has a page. Of a listener: one whose connect() has failed.
  std::optional<std::size_t> peer;
  std::optional<std::size_t> peer_connection;  // of that process; none: it is not there
  std::int64_t ns = 0;
  bool is_listener = false;
};

inline const SlotView& slot_of(const WaitingEnd& wait, std::span<const pages::Process> processes) {
  const pages::Process& process = processes[wait.process];
  return (wait.is_listener ? process.listeners : process.connections)[wait.connection];
}

enum class Reason : std::uint8_t {
  kStopped,           // the process is stopped
  kEnded,             // it has ended; without a page: it is no longer there
  kCallsNothing,      // it has open requests, and calls nothing for them
  kNoReceive,         // it posts no receive, and waits for nothing
  kNoSend,            // it sends nothing, and waits for nothing
  kNotAccepted,       // it has not accepted a connection, and waits for nothing
  kConnectionFailed,  // a connection of it has failed, and it waits for nothing
  kLost,              // both ends do their part, and packets do not arrive
  kCreditLost,        // it has posted a receive, and the sender has not been told
  kNoPath,            // no path of the connection works
  kRankMissing,       // somebody waits for a connection, and ranks of the job have no page
  kNotBegun,          // the same, and it has neither listened nor connected
  kElsewhere,         // the next process to look at is on another host
  kCircle,            // processes wait for one another
};

using End = std::pair<std::size_t, std::size_t>;  // a process and the place of its connection there

struct Cause {
  Reason reason;
  std::optional<std::size_t> process;  // that causes it; none: it is between two, or elsewhere
  WaitingEnd example;                  // the connection that has waited longest for this
  // Those that were found to wait for this: both ends of each, or one end twice if the other is not
  // here.
  std::set<std::pair<End, End>> connections = {};
  std::size_t waiting = 0;  // how many processes wait for it, at once or by way of others
  std::optional<std::size_t> failed = {};  // kConnectionFailed: in Process::failed
  std::optional<Death> death = {};         // kEnded: as others have noticed it
  std::set<std::size_t> survivors = {};    // the same: processes that it has cost a connection
  // kRankMissing: the ranks, and the processes that seem to wait for them outside of Beeline, since
  // they have made no connection yet; the same of kNotBegun. kElsewhere: if all ranks are here,
  // those that wait for nothing.
  std::vector<RankRange> missing = {};
  std::vector<std::size_t> unconnected = {};
};

struct Analysis {
  std::vector<WaitingEnd> waits;  // that last at least as long as was asked for
  std::vector<Cause> causes;      // that with the most processes first
};

Analysis find_causes(std::span<const pages::Process> processes, std::int64_t now_ns,
                     std::int64_t least_ns);

}  // namespace beeline::hang
