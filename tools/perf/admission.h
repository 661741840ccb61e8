// SPDX-License-Identifier: Apache-2.0
//
// The connections to rank 0 until every rank has connected. Any other client is refused, or stays
// connected without effect; rank 0 never waits for it.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "tools/perf/coordinator.h"
#include "tools/perf/meeting_place.h"

namespace beeline::perf {

class Reception {
 public:
  Reception(const Options& options, Door door);

  // Waits for all other ranks, for at most --timeout. The result is indexed by rank; entry 0 is
  // empty.
  Outcome<std::vector<Member>> gather();

 private:
  struct Guest {
    Line line;
    std::string from = {};  // its address
  };
  using Guests = std::list<Guest>;

  Outcome<bool> wait_once(std::int64_t deadline);
  Outcome<bool> let_in();
  Outcome<bool> hear(Guests::iterator guest);
  Outcome<bool> seat(Guests::iterator guest, const Hello& hello);
  void turn_away(Guests::iterator guest);

  const Options& options_;
  Door door_;
  Guests guests_;  // the oldest first
  std::vector<Member> members_;
  size_t missing_;
  int turned_away_ = 0;
};

}  // namespace beeline::perf
