// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/engine.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "common/base/blocked_signals.h"
#include "common/base/clock.h"

namespace softnic {
namespace {

// How long a due job is left to polling threads before the engine's thread runs it. The time is
// longer if a thread has polled recently, because a wake-up takes some microseconds of a core that
// this thread may need.
constexpr std::int64_t kGraceNs = 60 * beeline::kNsPerUs;
constexpr std::int64_t kGraceWithPollerNs = 500 * beeline::kNsPerUs;
constexpr std::int64_t kLatelyNs = beeline::kNsPerMs;

}  // namespace

Engine::~Engine() {
  {
    const std::lock_guard guard(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::int64_t Engine::grace(std::int64_t now) const noexcept {
  return now - polled_at_.load(std::memory_order_relaxed) < kLatelyNs ? kGraceWithPollerNs
                                                                      : kGraceNs;
}

// A thread that polls may have run the job before, while the engine's thread went to sleep.
void Engine::insert_locked(Job& job, std::int64_t due_ns) {
  job.due_ = due_ns;
  queue_.emplace(due_ns, &job);
  first_due_.store(queue_.begin()->first, std::memory_order_release);
  if (due_ns + grace(beeline::now_ns()) < sleeping_until_) wake_.notify_one();
}

void Engine::erase_locked(Job& job) {
  if (job.due_ == kNever) return;
  queue_.erase({job.due_, &job});
  job.due_ = kNever;
  first_due_.store(queue_.empty() ? kNever : queue_.begin()->first, std::memory_order_release);
}

int Engine::start() {
  const std::lock_guard guard(mutex_);
  if (thread_.joinable()) return 0;
  const beeline::BlockedSignals blocked;
  try {
    thread_ = std::thread([this] { thread_main(); });
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  return 0;
}

void Engine::schedule(Job& job, std::int64_t due_ns) {
  const std::lock_guard guard(mutex_);
  if (job.due_ <= due_ns) return;
  erase_locked(job);
  insert_locked(job, due_ns);
}

void Engine::cancel(Job& job) {
  std::unique_lock lock(mutex_);
  // A running job may schedule itself again, so it is erased after it has ended.
  finished_.wait(lock, [&] { return job.running_ == 0; });
  erase_locked(job);
}

void Engine::run_first_locked(std::unique_lock<std::mutex>& lock) {
  Job& job = *queue_.begin()->second;
  erase_locked(job);
  ++job.running_;
  lock.unlock();
  const std::optional<std::int64_t> again = job.run_job();
  lock.lock();
  if (again && *again < job.due_) {
    erase_locked(job);
    insert_locked(job, *again);
  }
  if (--job.running_ == 0) finished_.notify_all();
}

void Engine::run_due_job() noexcept {
  const std::int64_t due = first_due_.load(std::memory_order_acquire);
  if (due == kNever) return;
  const std::int64_t now = beeline::now_ns();
  if (due > now) return;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || queue_.empty() || queue_.begin()->first > now) return;
  polled_at_.store(now, std::memory_order_relaxed);
  run_first_locked(lock);
}

void Engine::thread_main() {
  pthread_setname_np(pthread_self(), "softnic-engine");
  prctl(PR_SET_TIMERSLACK, 1000UL);  // ns; shaped rates are only as even as these waits
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const std::int64_t now = beeline::now_ns();
    const std::int64_t due = queue_.empty() ? kNever : queue_.begin()->first + grace(now);
    if (due <= now) {
      run_first_locked(lock);
      continue;
    }
    sleeping_until_ = due;
    if (due == kNever) {
      wake_.wait(lock);
    } else {
      wake_.wait_for(lock, std::chrono::nanoseconds(due - now));
    }
    sleeping_until_ = 0;
  }
}

}  // namespace softnic
