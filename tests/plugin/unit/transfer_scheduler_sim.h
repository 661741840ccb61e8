// SPDX-License-Identifier: Apache-2.0
//
// A model of a comm's sending end with several paths. It sends messages over paths of known rates,
// as the scheduler says, and counts what arrives. Time is a number, so that seconds are simulated
// in milliseconds, and every run with the same seed is the same.
//
// A path carries its writes one after the other at its true rate. The sender polls a few
// microseconds after a completion; how many is random. It keeps a number of messages in flight, and
// begins another one when the oldest is complete, as NCCL does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "common/base/clock.h"
#include "plugin/transfer/scheduler.h"

namespace beeline::test {

// How messages are split.
enum class SplitRule : std::uint8_t {
  kScheduler,
  kEqual,  // as net_ib: equal parts for all paths, at once
};

struct Traffic {
  std::uint32_t message_bytes = 0;
  std::uint32_t in_flight = 0;  // messages
  // As in plugin/wire/chunks.h. Other values show what larger chunks would cost.
  std::uint32_t least_chunk_bytes = 16U << 10;
  std::int64_t latency_ns = 5 * kNsPerUs;
  std::int64_t most_poll_ns = 20 * kNsPerUs;  // from a completion until it is polled
};

inline constexpr Traffic kLarge{.message_bytes = 4U << 20, .in_flight = 8};
// What NCCL usually keeps in flight.
inline constexpr Traffic kUsual{.message_bytes = 512U << 10, .in_flight = 4};

struct SimPath {
  double mb_per_s = 0;     // the true rate; 0: it stands still
  std::uint8_t group = 0;  // as PathGuess::group
};

// Each on a rail of its own.
std::vector<SimPath> paths_of(const std::vector<double>& mb_per_s);

// Carries writes one after the other.
class SimLink {
 public:
  struct Write {
    std::uint64_t message = 0;  // its number
    std::uint64_t bytes = 0;
    std::uint32_t chunks = 0;
    std::int64_t posted_ns = 0;
    double left = 0;  // bytes that are not carried
  };

  // From now on.
  void set_rate(double bytes_per_ns, std::int64_t now_ns);
  double bytes_per_ns() const noexcept { return bytes_per_ns_; }
  void post(const Write& write);
  // Carries writes until that time.
  void advance(std::int64_t now_ns);
  // When the next write is carried, at the present rate; kNever without one.
  double next_ns() const noexcept;
  // When the first write that is not taken is carried, likewise.
  double first_ns() const noexcept;
  // Takes a write that was carried by then.
  bool take(std::int64_t now_ns, Write& write);
  double carried_bytes() const noexcept { return carried_bytes_; }

  static constexpr double kNever = 1e18;

 private:
  struct Done {
    Write write;
    double ns = 0;  // when it was carried
  };

  double bytes_per_ns_ = 0;
  double at_ns_ = 0;          // the link has advanced to here
  std::deque<Write> writes_;  // not carried
  std::deque<Done> done_;     // carried, and not taken
  double carried_bytes_ = 0;
};

class Sim {
 public:
  static constexpr std::int64_t kIntervalNs = 100 * kNsPerMs;

  // MB/s that each path has carried in one interval.
  using Interval = std::array<double, Scheduler::kMaxPaths>;

  // All ports claim the same speed.
  Sim(SplitRule rule, const Traffic& traffic, const std::vector<SimPath>& paths,
      std::uint64_t seed);

  // From now on.
  void set_rate(std::size_t path, double mb_per_s);
  void run_until(std::int64_t end_ns);

  std::int64_t now_ns() const noexcept { return now_ns_; }
  const std::vector<Interval>& intervals() const noexcept { return intervals_; }
  // The longest time without a completion on that path, until now.
  std::int64_t longest_gap_ns(std::size_t path) const noexcept;
  // The sum of the true rates.
  double ideal_mb_per_s() const noexcept;
  // The mean over `count` intervals that begin with this one.
  double mb_per_s(std::size_t first, std::size_t count) const noexcept;
  std::uint64_t writes() const noexcept { return writes_; }
  std::uint64_t messages() const noexcept { return begun_; }
  const Scheduler& scheduler() const noexcept { return scheduler_; }

 private:
  struct Message {
    std::uint64_t number;
    std::uint32_t unsent;      // chunks
    std::uint32_t missing;     // chunks that have not completed
    std::uint64_t bytes_left;  // of the unsent ones
  };

  void begin_messages();
  void post(Message& message);
  void post_by_scheduler(Message& message);
  void post_chunks(Message& message, std::uint8_t path, std::uint32_t chunks,
                   std::uint32_t chunk_bytes);
  void poll();
  void record_until(std::int64_t end_ns);
  std::int64_t next_poll_ns();
  std::int64_t next_interval_ns() const noexcept;

  SplitRule rule_;
  Traffic traffic_;
  std::uint32_t chunk_bytes_;
  Scheduler scheduler_;
  std::vector<SimLink> links_;
  std::vector<std::int64_t> completed_ns_;    // by path, the last time
  std::vector<std::int64_t> longest_gap_ns_;  // by path
  std::deque<Message> messages_;              // in flight, the oldest first
  std::uint64_t begun_ = 0;
  std::uint64_t writes_ = 0;
  std::vector<Interval> intervals_;
  Interval carried_{};  // bytes, until the last of them
  std::int64_t now_ns_ = 0;
  std::mt19937_64 random_;
};

}  // namespace beeline::test
