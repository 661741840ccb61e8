// SPDX-License-Identifier: Apache-2.0
//
// The comms of a rank with buffers for messages of one size, and the loop that moves them: what the
// point-to-point patterns share.
#pragma once

#include <vector>

#include "tools/perf/comms.h"
#include "tools/perf/cpu_time.h"
#include "tools/perf/slot_pool.h"

namespace beeline::perf {

template <class EndType>
struct Lane {
  CommPlan plan;
  EndType* end;
  SlotPool pool;
};

class Lanes {
 public:
  static Outcome<Lanes> open(Rank& rank, const Comms& comms, size_t size);
  Outcome<bool> close();

  // Before a round: what is going to be sent, and poison where it will arrive. Rounds differ in
  // every byte.
  Outcome<bool> prepare(std::uint64_t round);
  // After it: how many bytes are wrong, when each comm has carried `messages`.
  Outcome<size_t> check(std::uint64_t round, std::uint64_t messages);

  // On the progress thread: `messages` over each comm, in as full a window as there is.
  Outcome<Cost> stream(std::uint64_t messages);

  std::vector<Lane<SendEnd>>& sends() noexcept { return sends_; }
  std::vector<Lane<RecvEnd>>& recvs() noexcept { return recvs_; }

 private:
  explicit Lanes(Rank& rank) : rank_(&rank) {}
  Outcome<bool> turn(std::uint64_t messages);

  Rank* rank_;
  std::vector<Lane<SendEnd>> sends_;
  std::vector<Lane<RecvEnd>> recvs_;
};

// Writes a piece of a buffer.
NetResult<void> fill_piece(const Buffer& buffer, Piece piece, std::uint64_t id);
// Compares one and reports what is wrong with it.
NetResult<size_t> check_piece(Rank& rank, const std::string& where, const Buffer& buffer,
                              Piece piece, std::uint64_t id);
// The same for the guards around one.
NetResult<size_t> check_guards(Rank& rank, const std::string& where, const Buffer& buffer);

}  // namespace beeline::perf
