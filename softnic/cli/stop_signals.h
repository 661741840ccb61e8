// SPDX-License-Identifier: Apache-2.0
// Waiting for a time or a signal to stop, whichever comes first. The signals are blocked and waited
// for, so that one takes effect between two commands and never in the middle of one.
#pragma once

#include <signal.h>

#include <cstdint>
#include <string>

namespace softnic::cli {

// Threads: one, and made before others begin. SIGINT, SIGTERM and SIGHUP stay blocked afterwards.
class StopSignals {
 public:
  StopSignals();

  // False once a signal has come; true when it is `at_ns` after our making.
  bool wait_until(std::uint64_t at_ns);

  int signal() const { return signal_; }  // 0: none came
  std::string signal_name() const;        // "SIGTERM"
  int exit_status() const { return signal_ == 0 ? 0 : 128 + signal_; }
  std::uint64_t elapsed_ns() const;

 private:
  std::int64_t started_ns_;
  int signal_ = 0;
  sigset_t awaited_;
};

}  // namespace softnic::cli
