// SPDX-License-Identifier: Apache-2.0
//
// The clock that all code of the simulation reads, and what has to happen at which time. The
// program is linked so that clock_gettime, time and getrandom come here (clock.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace beeline::simulation {

inline constexpr std::int64_t kUs = 1'000;
inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kSec = 1'000'000'000;

// Calls in the order of their times; at the same time, in the order in which they were added.
class Agenda {
 public:
  using Call = std::function<void()>;

  // Sets the simulated clock to its start. There is one agenda at a time.
  Agenda();
  Agenda(const Agenda&) = delete;
  Agenda& operator=(const Agenda&) = delete;
  ~Agenda();

  std::int64_t now() const noexcept;
  void at(std::int64_t when_ns, Call call);
  void in(std::int64_t delay_ns, Call call) { at(now() + delay_ns, std::move(call)); }
  // Makes the next call, unless it is later than that. False: there is none.
  bool step(std::int64_t until_ns);
  std::uint64_t calls() const noexcept { return calls_; }

 private:
  struct Entry {
    std::int64_t when_ns;
    std::uint64_t number;
    Call call;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const noexcept {
      return a.when_ns != b.when_ns ? a.when_ns > b.when_ns : a.number > b.number;
    }
  };

  std::vector<Entry> entries_;  // a heap
  std::uint64_t added_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace beeline::simulation
