// SPDX-License-Identifier: Apache-2.0
//
// Waiting for many descriptors, and for the next timer.
//
// Threads: one, the control thread; only want() may be called by any, as long as the descriptor is
// open.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace beeline {

class Poller {
 public:
  // Told by what epoll said. May add and remove whatever it likes, itself included.
  using Handler = std::function<void(std::uint32_t events)>;
  // Names one registration and is never used again: an event for one that has been removed, and
  // whose descriptor's number already serves another, finds nobody.
  using Key = std::uint64_t;

  static Result<std::unique_ptr<Poller>> create();

  Result<Key> add(int fd, std::uint32_t events, Handler handler);
  void want(int fd, Key key, std::uint32_t events) noexcept;
  // Before the descriptor is closed.
  void remove(int fd, Key key) noexcept;

  // Runs once, at or after `when`. There is no way to cancel: let it find nothing to do.
  void at(std::int64_t when_ns, std::function<void()> call);

  enum class Idle : std::uint8_t { kMayWait, kMustNot };
  // Waits until something happens, unless there is other work, and handles it.
  void run_once(Idle idle = Idle::kMayWait);

  // The total time that this thread has waited for events.
  std::int64_t waited_ns() const noexcept { return waited_ns_; }

 private:
  struct Timer {
    std::int64_t when_ns;
    std::uint64_t number;  // of equal times the earlier made goes first
    std::function<void()> call;
  };
  struct Later {
    bool operator()(const Timer& a, const Timer& b) const noexcept {
      return a.when_ns != b.when_ns ? a.when_ns > b.when_ns : a.number > b.number;
    }
  };

  explicit Poller(UniqueFd epoll) noexcept : epoll_(std::move(epoll)) {}
  int patience_ms() const noexcept;
  void run_timers();

  UniqueFd epoll_;
  Key last_key_ = 0;
  std::unordered_map<Key, std::shared_ptr<Handler>> handlers_;
  std::int64_t waited_ns_ = 0;
  std::uint64_t last_timer_ = 0;
  std::priority_queue<Timer, std::vector<Timer>, Later> timers_;
};

}  // namespace beeline
