// SPDX-License-Identifier: Apache-2.0
//
// Waits for events of many descriptors and for timers, and calls their handlers.
// Threads: the control thread. Any thread may call want() while the descriptor is open.
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

// Calls that the control thread makes later. In the plugin, its poller keeps the timers.
class Timers {
 public:
  // Makes this call once, at this time or later. A timer cannot be canceled: the call has to check
  // whether there is still something to do.
  virtual void at(std::int64_t when_ns, std::function<void()> call) = 0;

 protected:
  ~Timers() = default;
};

class Poller final : public Timers {
 public:
  // Gets the events of epoll. It may add and remove descriptors, its own included.
  using Handler = std::function<void(std::uint32_t events)>;
  // The number of one registration, never used again. An event of a removed registration therefore
  // finds no handler, even if its descriptor's number is in use again.
  using Key = std::uint64_t;

  static Result<std::unique_ptr<Poller>> create();

  Result<Key> add(int fd, std::uint32_t events, Handler handler);
  void want(int fd, Key key, std::uint32_t events) noexcept;
  void remove(int fd, Key key) noexcept;

  void at(std::int64_t when_ns, std::function<void()> call) override;

  enum class Idle : std::uint8_t { kMayWait, kMustNot };
  // Handles the events and timers that are due. Waits for the first one if it may.
  void run_once(Idle idle = Idle::kMayWait);

  // The total time that this thread has waited for events.
  std::int64_t waited_ns() const noexcept { return waited_ns_; }

 private:
  struct Timer {
    std::int64_t when_ns;
    std::uint64_t number;  // at the same time, the timer that was set first goes first
    std::function<void()> call;
  };
  struct Later {
    bool operator()(const Timer& a, const Timer& b) const noexcept {
      return a.when_ns != b.when_ns ? a.when_ns > b.when_ns : a.number > b.number;
    }
  };

  explicit Poller(UniqueFd epoll) noexcept : epoll_(std::move(epoll)) {}
  int timeout_ms() const noexcept;
  void run_timers();

  UniqueFd epoll_;
  Key last_key_ = 0;
  std::unordered_map<Key, std::shared_ptr<Handler>> handlers_;
  std::int64_t waited_ns_ = 0;
  std::uint64_t last_timer_ = 0;
  std::priority_queue<Timer, std::vector<Timer>, Later> timers_;
};

}  // namespace beeline
