// SPDX-License-Identifier: Apache-2.0
// Runs the NIC's deferred work: requests of queue pairs that wait for a time, or that would take a
// caller too long. A thread that polls an empty CQ also runs jobs, which is fastest on a machine
// with few cores; the engine's own thread runs them if no thread polls.
//
// Lifecycle: the thread starts with the first opened device, which fails if there is no memory for
// the thread, and ends with the engine.
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
  // Work that is run at a given time. run_job() returns when to run it again.
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

  // Starts the thread, if it does not run yet. Returns an errno. Call it before schedule().
  int start();
  void schedule(Job& job, std::int64_t due_ns);
  // When it returns, the job is not running and not scheduled.
  void cancel(Job& job);
  // Disables the engine in a forked child, which has no engine thread and unusable locks.
  void abandon() noexcept { first_due_.store(kNever); }
  // Runs one job that is due, if there is one. For threads that poll.
  void run_due_job() noexcept;

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::int64_t grace(std::int64_t now) const noexcept;
  void insert_locked(Job& job, std::int64_t due_ns);
  void erase_locked(Job& job);
  void run_first_locked(std::unique_lock<std::mutex>& lock);
  void thread_main();

  std::mutex mutex_;
  std::condition_variable wake_;      // the thread: there is an earlier job, or the engine ends
  std::condition_variable finished_;  // cancel(): a job has stopped running
  std::set<std::pair<std::int64_t, Job*>> queue_;
  std::atomic<std::int64_t> first_due_{kNever};
  std::atomic<std::int64_t> polled_at_{0};
  std::int64_t sleeping_until_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace softnic
