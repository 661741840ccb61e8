// SPDX-License-Identifier: Apache-2.0
//
// Elapsed time, and CPU time of the calling thread and of the whole process, which includes the
// plugin's own threads.
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "common/base/clock.h"

namespace beeline::perf {

struct Cost {
  std::int64_t wall_ns = 0;
  double thread_user_us = 0;
  double thread_system_us = 0;
  double process_user_us = 0;
  double process_system_us = 0;

  Cost& operator+=(const Cost& other) noexcept {
    wall_ns += other.wall_ns;
    thread_user_us += other.thread_user_us;
    thread_system_us += other.thread_system_us;
    process_user_us += other.process_user_us;
    process_system_us += other.process_system_us;
    return *this;
  }
};

class CostMeter {
 public:
  CostMeter() : start_ns_(now_ns()) {
    ::getrusage(RUSAGE_THREAD, &thread_);
    ::getrusage(RUSAGE_SELF, &process_);
  }

  Cost read() const {
    Cost cost;
    cost.wall_ns = now_ns() - start_ns_;
    rusage thread{};
    rusage process{};
    ::getrusage(RUSAGE_THREAD, &thread);
    ::getrusage(RUSAGE_SELF, &process);
    cost.thread_user_us = us(thread.ru_utime) - us(thread_.ru_utime);
    cost.thread_system_us = us(thread.ru_stime) - us(thread_.ru_stime);
    cost.process_user_us = us(process.ru_utime) - us(process_.ru_utime);
    cost.process_system_us = us(process.ru_stime) - us(process_.ru_stime);
    return cost;
  }

 private:
  static double us(const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  }

  std::int64_t start_ns_;
  rusage thread_{};
  rusage process_{};
};

// Converted for a rank's row.
struct CpuPerMessage {
  double thread_user_us = 0;
  double thread_system_us = 0;
  double process_user_us = 0;
  double process_system_us = 0;
};

inline CpuPerMessage cpu_per_message(const Cost& cost, std::uint64_t messages) {
  const double n = messages == 0 ? 1 : static_cast<double>(messages);
  return {.thread_user_us = cost.thread_user_us / n,
          .thread_system_us = cost.thread_system_us / n,
          .process_user_us = cost.process_user_us / n,
          .process_system_us = cost.process_system_us / n};
}

}  // namespace beeline::perf
