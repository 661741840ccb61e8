// SPDX-License-Identifier: Apache-2.0
//
// All-reduces of one size on one rank: the memory, the channels, and the comparison of the results.
//
// All-reduces run in batches, without a pause between two of them. Each all-reduce has its own slot
// in the memory, with numbers that no other all-reduce has. After a batch, every element of every
// slot is compared. Only the batch is timed, not the work before and after it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tools/perf/cpu_time.h"
#include "tools/perf/patterns/ring_channel.h"

namespace beeline::perf {

class Ring {
 public:
  Ring(Rank& rank, const Comms& comms, size_t bytes);

  Outcome<bool> open();
  Outcome<bool> close();

  struct Reduced {
    Cost cost = {};    // of `times` all-reduces
    size_t wrong = 0;  // elements of all that were run
  };
  // All ranks must call it with the same number.
  Outcome<Reduced> reduce(std::uint64_t times);

  // The number of sends and receives of this rank in one all-reduce.
  std::uint64_t messages() const noexcept;

 private:
  // The ranks leave their comparisons at different times. With more than one slot, a batch begins
  // with an all-reduce that synchronizes them and is not timed.
  std::uint64_t lead_in() const noexcept { return slots_ > 1 ? 1 : 0; }
  std::uint64_t batch_size(std::uint64_t times) const noexcept;
  Outcome<Reduced> run_batch(std::uint64_t times);
  Outcome<Cost> run_timed(std::uint64_t times);
  Outcome<bool> reduce_once(size_t slot);

  Outcome<bool> prepare(size_t slots);
  Outcome<size_t> check(size_t slots);
  Outcome<size_t> check_guards_of_all() const;
  size_t check_sums(size_t slot, const std::uint8_t* sums) const;
  size_t check_padding(size_t slot, const std::uint8_t* behind) const;

  Outcome<bool> add_channel(size_t c);
  Outcome<void*> add_memory(End& end, const Buffer& memory);

  Rank& rank_;
  const Comms& comms_;
  const size_t bytes_;
  const size_t stride_;  // of slots
  const size_t slots_;
  const size_t depth_;
  const RingLayout layout_;
  std::uint64_t first_round_ = 1;  // of slot 0 in this batch; a round is one all-reduce
  std::optional<Buffer> source_;
  std::optional<Buffer> result_;
  std::vector<Buffer> scratch_;  // channels keep their places
  std::vector<std::pair<End*, void*>> registrations_;
  std::vector<RingChannel> channels_;
};

}  // namespace beeline::perf
