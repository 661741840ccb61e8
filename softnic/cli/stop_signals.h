// SPDX-License-Identifier: Apache-2.0
// Waits for a time or for a signal to stop, whichever comes first. The signals are blocked at all
// other times, so they take effect between two commands and never within one.
#pragma once

#include <signal.h>

#include <cstdint>
#include <string>

namespace softnic::cli {

// Threads: used by one thread, and created before others start. SIGINT, SIGTERM and SIGHUP stay
// blocked afterwards.
class StopSignals {
 public:
  StopSignals();

  // Waits until `at_ns` after the construction and returns true. Returns false once a signal has
  // come.
  bool wait_until(std::uint64_t at_ns);

  int signal() const { return signal_; }  // 0: none has come
  std::string signal_name() const;        // "SIGTERM"
  int exit_status() const { return signal_ == 0 ? 0 : 128 + signal_; }
  std::uint64_t elapsed_ns() const;

 private:
  std::int64_t started_ns_;
  int signal_ = 0;
  sigset_t awaited_;
};

}  // namespace softnic::cli
