// SPDX-License-Identifier: Apache-2.0
// The part of the NIC that works by itself: queue pairs that have something to do later, or more to
// do than a caller should wait for. A thread polling an empty CQ lends a hand, which on a small
// machine is the quickest way; the engine's own thread sees to it that nothing depends on that.
//
// Lifecycle: the thread starts with the first scheduled QP and ends with the engine.
// Threads: all functions may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace softnic {

class Engine {
 public:
  // Something that is run when it is due, and says when to run it again.
  class Job {
   public:
    virtual std::optional<std::int64_t> run_job() = 0;

   protected:
    ~Job() = default;

   private:
    friend class Engine;
    // Guarded by the engine's mutex.
    std::int64_t due_ = kNever;
    int running_ = 0;
  };

  ~Engine();

  void schedule(Job& job, std::int64_t due_ns);
  // Afterwards the job neither runs nor will run, unless scheduled again.
  void cancel(Job& job);
  // In a forked child, where neither the thread nor the locks are what they were: never works
  // again.
  void abandon() noexcept { first_due_.store(kNever); }
  // Runs one job that is due, if there is one: for threads with nothing better to do.
  void run_due_job() noexcept;

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::int64_t grace(std::int64_t now) const noexcept;
  void insert_locked(Job& job, std::int64_t due_ns);
  void erase_locked(Job& job);
  void run_first_locked(std::unique_lock<std::mutex>& lock);
  void thread_main();

  std::mutex mutex_;
  std::condition_variable wake_;      // the thread: an earlier job, or the end
  std::condition_variable finished_;  // cancel(): a job has stopped running
  std::set<std::pair<std::int64_t, Job*>> queue_;
  std::atomic<std::int64_t> first_due_{kNever};
  std::atomic<std::int64_t> polled_at_{0};
  std::int64_t sleeping_until_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace softnic
