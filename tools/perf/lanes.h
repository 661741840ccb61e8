// SPDX-License-Identifier: Apache-2.0
//
// The comms of a rank with buffers for messages of one size, and the loop that moves the messages.
// All point-to-point patterns use it.
#pragma once

#include <cstdint>
#include <optional>
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

  // Before a round: writes the messages into the send buffers, and poison into the receive buffers.
  // Every byte differs from that of the previous round.
  Outcome<bool> prepare(std::uint64_t round);
  // After a round in which each comm carried `messages`: the number of wrong bytes, of every
  // message if stream() has checked them.
  Outcome<size_t> check(std::uint64_t round, std::uint64_t messages);

  // Moves `messages` of this round over each comm, with a full window. Runs on the progress thread.
  Outcome<Cost> stream(std::uint64_t round, std::uint64_t messages);

  std::vector<Lane<SendEnd>>& sends() noexcept { return sends_; }
  std::vector<Lane<RecvEnd>>& recvs() noexcept { return recvs_; }

 private:
  explicit Lanes(Rank& rank) : rank_(&rank) {}
  Outcome<bool> turn(std::uint64_t round, std::uint64_t messages);
  // With --check-every: compares a message that has arrived, and poisons its slot for the next.
  Outcome<bool> check_arrived(const Lane<RecvEnd>& lane, std::uint64_t round,
                              std::uint64_t message);

  Rank* rank_;
  std::vector<Lane<SendEnd>> sends_;
  std::vector<Lane<RecvEnd>> recvs_;
  std::optional<size_t> wrong_;  // bytes in the messages that stream() has checked since check()
};

// Writes a piece of a buffer.
NetResult<void> fill_piece(const Buffer& buffer, Piece piece, std::uint64_t id);
// Compares a piece with the expected bytes, and reports the differences.
NetResult<size_t> check_piece(Rank& rank, const std::string& where, const Buffer& buffer,
                              Piece piece, std::uint64_t id);
// The same for the guards around a buffer.
NetResult<size_t> check_guards(Rank& rank, const std::string& where, const Buffer& buffer);

}  // namespace beeline::perf
