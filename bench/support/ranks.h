// SPDX-License-Identifier: Apache-2.0
//
// Starts the processes of a benchmark, each on a host of the fabric and, if there are enough, on
// its own processor.
#pragma once

#include <string>
#include <vector>

#include "tests/support/peer_group.h"

namespace beeline::bench {

struct Rank {
  std::string host;
  test::PeerBody body;
};

// The processors for the ranks, in order: one of each core on which this process may run. Never
// empty.
const std::vector<int>& processors();

// Rank i runs on host `ranks[i].host` and processor i, or anywhere if there are fewer processors
// than ranks. Prints errors, and returns the exit status of the program.
int run_ranks(const std::vector<Rank>& ranks);

// Busy-waits for another process. Yields the processor now and then, in case both share it.
class Spin {
 public:
  void operator()() noexcept;

 private:
  unsigned turns_ = 0;
};

}  // namespace beeline::bench
