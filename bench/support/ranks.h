// SPDX-License-Identifier: Apache-2.0
//
// Starts the processes of a benchmark: each on a host of the fabric and, where the machine has as
// many, on a processor of its own.
#pragma once

#include <string>
#include <vector>

#include "tests/support/peer_group.h"

namespace beeline::bench {

struct Rank {
  std::string host;
  test::PeerBody body;
};

// The processors that benchmarks use: different cores of those that this process may run on, in
// the order in which ranks take them. Never empty.
const std::vector<int>& processors();

// Rank i runs on host `ranks[i].host` and processor i, or anywhere if there are fewer processors
// than ranks. Returns the program's exit status: what goes wrong is printed.
int run_ranks(const std::vector<Rank>& ranks);

// Waiting for another process, at the full speed of the machine. A processor that the two share is
// given up now and then.
class Spin {
 public:
  void operator()() noexcept;

 private:
  unsigned turns_ = 0;
};

}  // namespace beeline::bench
