// SPDX-License-Identifier: Apache-2.0
//
// A rank's end of the line. All ranks make the same calls in the same order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/perf/line.h"

namespace beeline::perf {

class Team {
 public:
  Team(Line line, int rank, int ranks) : line_(std::move(line)), rank_(rank), ranks_(ranks) {}

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }

  // Everybody's part, by rank. `what` is shown to the user when somebody does not come.
  Outcome<std::vector<std::string>> gather(const std::string& what, const std::string& part);
  Outcome<bool> meet(const std::string& what);
  Outcome<double> greatest(const std::string& what, double mine);
  Outcome<double> least(const std::string& what, double mine);
  // Returns rank 0's number; those of the other ranks are ignored.
  Outcome<std::uint64_t> rank_0_says(const std::string& what, std::uint64_t mine);

  // Without an answer. A coordinator that is gone shows at the next gather.
  void tell(FrameKind kind, const std::string& body) { line_.send(kind, body); }

  // Returns when the coordinator is gone.
  void wait_for_end() {
    while (line_.receive()) continue;
  }

 private:
  Outcome<std::vector<double>> numbers(const std::string& what, double mine);

  Line line_;
  int rank_;
  int ranks_;
};

}  // namespace beeline::perf
