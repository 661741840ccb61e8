// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/worker.h"

#include <pthread.h>

#include <chrono>
#include <exception>
#include <utility>

namespace beeline::perf {

namespace {

// A job can throw if memory runs out.
Outcome<bool> run_job(const Job& job) {
  try {
    return job();
  } catch (const std::exception& error) {
    return fail(tools::describe(error));
  }
}

}  // namespace

Worker::Worker(const char* name) : thread_([this, name] { run(name); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::start(Job job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
    outcome_.reset();
  }
  changed_.notify_all();
}

std::optional<Outcome<bool>> Worker::wait(int milliseconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                    [this] { return outcome_.has_value(); });
  return std::exchange(outcome_, std::nullopt);
}

void Worker::run(const char* name) {
  ::pthread_setname_np(::pthread_self(), name);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || job_; });
    if (ending_) return;
    const Job job = std::exchange(job_, nullptr);
    lock.unlock();
    Outcome<bool> outcome = run_job(job);
    lock.lock();
    outcome_ = std::move(outcome);
    changed_.notify_all();
  }
}

}  // namespace beeline::perf
