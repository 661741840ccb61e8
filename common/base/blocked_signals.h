// SPDX-License-Identifier: Apache-2.0
//
// Threads of the plugin run in the application's process and must not handle its signals.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace beeline {

// As long as it exists, threads that this thread starts have every signal blocked.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace beeline
