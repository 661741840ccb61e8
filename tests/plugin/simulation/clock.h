// SPDX-License-Identifier: Apache-2.0
//
// The clock that all code of the simulation reads, and what has to happen at which time. The
// program is linked so that clock_gettime, time, getrandom and the functions of eventfd come here
// (clock.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace beeline::simulation {

inline constexpr std::int64_t kUs = 1'000;
inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kSec = 1'000'000'000;

// Calls in the order of their times; at the same time, in the order in which they were added.
class Agenda {
 public:
  // Sets the simulated clock to its start. There is one agenda at a time.
  Agenda();
  Agenda(const Agenda&) = delete;
  Agenda& operator=(const Agenda&) = delete;
  ~Agenda();

  std::int64_t now() const noexcept;
  template <class Call>
  void at(std::int64_t when_ns, Call&& call) {
    Task& task = new_task();
    task.set(std::forward<Call>(call));
    add(when_ns, task);
  }
  template <class Call>
  void in(std::int64_t delay_ns, Call&& call) {
    at(now() + delay_ns, std::forward<Call>(call));
  }
  // Makes the next call, unless it is later than that. False: there is none.
  bool step(std::int64_t until_ns);
  std::uint64_t calls() const noexcept { return calls_; }

 private:
  // A call with all that it needs, in a place of its own: there are millions in a run of some
  // seconds, and memory of its own for each would cost more than most of the calls.
  class Task {
   public:
    template <class Call>
    void set(Call&& call) {
      using Kept = std::decay_t<Call>;
      static_assert(sizeof(Kept) <= sizeof place_);
      static_assert(alignof(Kept) <= alignof(std::max_align_t));
      new (place_) Kept(std::forward<Call>(call));
      call_ = [](void* kept) { (*static_cast<Kept*>(kept))(); };
      destroy_ = [](void* kept) noexcept { std::destroy_at(static_cast<Kept*>(kept)); };
    }
    void call() { call_(place_); }
    void clear() noexcept { destroy_(place_); }

   private:
    alignas(std::max_align_t) std::byte place_[176];
    void (*call_)(void*) = nullptr;
    void (*destroy_)(void*) noexcept = nullptr;
  };
  struct Entry {
    std::int64_t when_ns;
    std::uint64_t number;
    Task* task;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const noexcept {
      return a.when_ns != b.when_ns ? a.when_ns > b.when_ns : a.number > b.number;
    }
  };

  Task& new_task();
  void add(std::int64_t when_ns, Task& task);

  std::deque<Task> tasks_;
  std::vector<Task*> free_tasks_;
  std::vector<Entry> entries_;  // a heap
  std::uint64_t added_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace beeline::simulation
