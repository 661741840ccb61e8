// SPDX-License-Identifier: Apache-2.0
//
// A thread that runs jobs for the main thread, one after the other, in the role of NCCL's service
// or progress thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "tools/cli/exit_status.h"

namespace beeline::perf {

using Job = std::function<Outcome<bool>()>;

class Worker {
 public:
  explicit Worker(const char* name);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start(Job job);
  // The result of the job, or none if it has not ended within `milliseconds`.
  std::optional<Outcome<bool>> wait(int milliseconds);

 private:
  void run(const char* name);

  std::mutex mutex_;
  std::condition_variable changed_;
  Job job_;
  std::optional<Outcome<bool>> outcome_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace beeline::perf
