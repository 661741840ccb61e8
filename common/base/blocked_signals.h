// SPDX-License-Identifier: Apache-2.0
//
// A thread of ours lives in somebody else's process, whose signals are none of its business.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace beeline {

// While it lives, threads that this thread starts are born with every signal blocked.
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
