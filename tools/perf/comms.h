// SPDX-License-Identifier: Apache-2.0
//
// Sets up comms as NCCL does: listen, send the handle of 128 bytes to the other rank, then call
// connect and accept until each returns a comm. Each listener is closed as soon as its accept has
// succeeded.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/perf/rank.h"
#include "tools/perf/recv_end.h"
#include "tools/perf/send_end.h"

namespace beeline::perf {

// A comm carries data in one direction. `index` determines the device at both ends.
struct CommPlan {
  int from = 0;
  int to = 0;
  int index = 0;
};

struct SendComm {
  CommPlan plan;
  std::unique_ptr<SendEnd> end;
};

struct RecvComm {
  CommPlan plan;
  std::unique_ptr<RecvEnd> end;
};

// The ends of this rank, in the order of the plans.
struct Comms {
  std::vector<SendComm> sends;
  std::vector<RecvComm> recvs;
  std::int64_t listen_ns = 0;
  std::int64_t connect_ns = 0;  // from the first connect or accept to the last
};

// The most requests of each end at a time. A grouped receive is one request; each of its parts is
// one send.
struct CommDepth {
  size_t sends = 0;
  size_t recvs = 0;
};

// All ranks must call it with the same plans.
Outcome<Comms> open_comms(Rank& rank, const std::vector<CommPlan>& plans, CommDepth depth);

// Closes this rank's ends, without waiting for other ranks.
Outcome<bool> close_comms(Rank& rank, Comms comms);

// The plans of most patterns: pairs of ranks 0-1, 2-3 and so on with `comms` for each pair, in one
// direction or both; and a ring.
enum class Ways { kOne, kBoth };
std::vector<CommPlan> plan_pairs(int ranks, int comms, Ways ways);
std::vector<CommPlan> plan_ring(int ranks, int comms);

}  // namespace beeline::perf
