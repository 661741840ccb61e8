// SPDX-License-Identifier: Apache-2.0
//
// A rank's connection to the coordinator, for collective calls. All ranks make the same calls in
// the same order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/perf/messages.h"
#include "tools/ranks/line_stream.h"

namespace beeline::perf {

class Team {
 public:
  static constexpr const char* kNoCoordinator =
      "the coordinator closed the connection; rank 0, or the process that started it, has ended";

  Team(ranks::LineStream coordinator, int rank, int ranks)
      : coordinator_(std::move(coordinator)), rank_(rank), ranks_(ranks) {}

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }

  // Returns the parts of all ranks, by rank. `what` is shown to the user if a rank does not take
  // part.
  Outcome<std::vector<std::string>> gather(const std::string& what, const std::string& part);
  Outcome<bool> barrier(const std::string& what);
  Outcome<double> greatest(const std::string& what, double mine);
  Outcome<double> least(const std::string& what, double mine);
  // Returns rank 0's number; those of the other ranks are ignored.
  Outcome<std::uint64_t> broadcast_from_rank_0(const std::string& what, std::uint64_t mine);

  // Sends without waiting for an answer. False if the coordinator is gone, as the next gather()
  // says.
  bool send(Kind kind, const std::string& body) {
    return static_cast<bool>(coordinator_.send(static_cast<char>(kind) + body));
  }

  // Returns when the coordinator has closed the connection.
  void wait_for_end() {
    while (coordinator_.receive()) continue;
  }

 private:
  Outcome<std::vector<double>> numbers(const std::string& what, double mine);

  ranks::LineStream coordinator_;
  int rank_;
  int ranks_;
};

}  // namespace beeline::perf
