// SPDX-License-Identifier: Apache-2.0
//
// Setting up comms as NCCL does: listen, ship the 128 bytes, then poll connect and accept until
// each has its comm; close the listener as soon as its accept is through.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/perf/rank.h"
#include "tools/perf/recv_end.h"
#include "tools/perf/send_end.h"

namespace beeline::perf {

// A comm is one way. `index` chooses the device at both ends.
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

// The ends that this rank has, in the order of the plans.
struct Comms {
  std::vector<SendComm> sends;
  std::vector<RecvComm> recvs;
  std::int64_t listen_ns = 0;
  std::int64_t connect_ns = 0;  // from the first connect or accept to the last
};

// How many requests each end holds. A group of receives is one, each of its parts a send.
struct CommDepth {
  size_t sends = 0;
  size_t recvs = 0;
};

// All ranks call it with the same plans.
Outcome<Comms> open_comms(Rank& rank, const std::vector<CommPlan>& plans, CommDepth depth);

// Closes this rank's ends, without asking the others.
Outcome<bool> close_comms(Rank& rank, Comms comms);

// The usual plans: pairs 0-1, 2-3 and so on, `comms` for each, one way or both; and a ring.
enum class Ways { kOne, kBoth };
std::vector<CommPlan> plan_pairs(int ranks, int comms, Ways ways);
std::vector<CommPlan> plan_ring(int ranks, int comms);

}  // namespace beeline::perf
