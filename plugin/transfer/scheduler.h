// SPDX-License-Identifier: Apache-2.0
//
// Decides which path of a comm carries a message, or how the chunks of a message are split among
// its paths. It has no clock and calls no library: times and bytes come in as arguments, so that a
// simulation can test it (tests/plugin/unit/transfer_scheduler_test.cc).
//
// The rule is that all paths finish at the same time. When a path will finish follows from the
// bytes that it has outstanding and from its measured rate; the speed that its port claims is only
// the value to begin with. Four more rules keep that true:
//   - At most as much is outstanding on a path as it carries in 2 ms, but always 512 KiB or two
//     chunks. The rest is assigned when something completes, so that little has to wait for a path
//     that has become slow. If the thread polls so rarely that a path becomes idle, the limit
//     grows, up to 16 ms.
//   - A path whose completions are overdue counts as slow before anything completes.
//   - A path that is given nothing is tried with one chunk every 10 ms, or less often if the
//     message would have to wait for that chunk, so that its rate becomes known again.
//   - A small message is not split. It takes the path that would finish it first. Most messages of
//     a few kilobytes are not brought here: see SendComm::isend().
//
// Paths between the same two ports, such as several queue pairs, form a group: their rate is
// measured together, and each part of a message takes the path of the group with the fewest bytes
// outstanding. With SPLIT_DATA_ON_QPS each path is a group of its own.
//
// Threads: as Comm. A comm with one path needs none of this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/clock.h"
#include "plugin/transfer/path_rate.h"

namespace beeline {

// A bit for each path.
using PathMask = std::uint8_t;

// What is known about a path before it has carried anything.
struct PathGuess {
  std::uint32_t speed_mbps = 0;  // megabits per second, as the ports of both ends claim; 0: unknown
  std::uint8_t group = 0;        // below Scheduler::kMaxPaths
};

// Chunks of one message that one path is given now. They follow each other, so they are one write.
struct PathShare {
  std::uint8_t path = 0;
  std::uint32_t chunks = 0;
};

class Scheduler {
 public:
  static constexpr std::size_t kMaxPaths = 8;
  // Smaller messages are not split.
  static constexpr std::uint64_t kLeastSplitBytes = std::uint64_t{128} << 10;

  using Shares = std::array<PathShare, kMaxPaths>;

  // One to kMaxPaths paths, by their numbers.
  explicit Scheduler(std::span<const PathGuess> paths) noexcept;

  // The path for a message that is not split. `usable` has one bit at least.
  std::uint8_t choose(PathMask usable, std::uint64_t bytes, std::int64_t now_ns) noexcept;

  // Splits the next chunks of a message. Returns how many elements of `shares` are written; each
  // names another path, and all together have at most `chunks`. The caller posts them, says so with
  // posted(), and asks again for the rest of the message, until it gets 0. Then it waits until
  // something completes on any path, which is certain to happen: as long as no path has anything
  // outstanding, the result is not 0.
  unsigned split(PathMask usable, std::uint32_t chunks, std::uint32_t chunk_bytes,
                 std::int64_t now_ns, Shares& shares) noexcept;

  // After a work request was posted that completes these bytes.
  void posted(std::uint8_t path, std::uint64_t bytes, std::int64_t now_ns) noexcept {
    Group& group = groups_[group_of_[path]];
    if (group.rate.is_due(now_ns)) group.rate.measure(latency_ns_);
    group.rate.posted(bytes, now_ns);
    group.posted_ns = now_ns;
    outstanding_[path] += bytes;
  }
  // After its completion. Completions that one poll has found should get the same time.
  void completed(std::uint8_t path, std::uint64_t bytes, std::int64_t now_ns) noexcept {
    Group& group = groups_[group_of_[path]];
    if (group.rate.is_due(now_ns)) group.rate.measure(latency_ns_);
    group.rate.completed(bytes, now_ns);
    if (group.is_full && group.rate.outstanding() == 0) group.rate.ran_dry();
    outstanding_[path] -= bytes;
  }

  // What is outstanding on the path will not complete.
  void lost(std::uint8_t path) noexcept {
    groups_[group_of_[path]].rate.lost(outstanding_[path]);
    outstanding_[path] = 0;
  }

  std::uint64_t outstanding(std::uint8_t path) const noexcept { return outstanding_[path]; }
  // Bytes per nanosecond, of all paths of its group together. Includes that they are late.
  double rate(std::uint8_t path, std::int64_t now_ns) const noexcept {
    return 1 / groups_[group_of_[path]].rate.ns_per_byte(now_ns);
  }

  // Time in which all that is outstanding on the path's group should complete.
  std::int64_t expected_ns(std::uint8_t path) const noexcept {
    const PathRate& rate = groups_[group_of_[path]].rate;
    return static_cast<std::int64_t>(static_cast<double>(rate.outstanding()) / rate.bytes_per_ns());
  }

 private:
  // Paths whose rate is measured together.
  struct Group {
    PathRate rate;
    PathMask paths = 0;
    bool is_full = false;        // the last message could have used more of it
    std::int64_t posted_ns = 0;  // when it was last given something
  };

  std::uint8_t least_loaded(PathMask paths) const noexcept;

  std::array<Group, kMaxPaths> groups_;
  std::array<std::uint64_t, kMaxPaths> outstanding_{};
  std::array<std::uint8_t, kMaxPaths> group_of_{};
  std::uint8_t group_count_ = 0;  // groups_ from here on have no paths
  std::uint8_t turn_ = 0;         // the group that is asked first, so that equal ones take turns
  double latency_ns_ = static_cast<double>(PathRate::kPatienceNs);
};

}  // namespace beeline
