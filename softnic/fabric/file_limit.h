// SPDX-License-Identifier: Apache-2.0
// A process whose file grows beyond its limit (`ulimit -f`) is ended by SIGXFSZ. softnic's files
// must not end the program: while an object of this class exists, the call fails with EFBIG
// instead.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cerrno>

namespace softnic {

class FileLimitIsAnError {
 public:
  FileLimitIsAnError() noexcept {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  FileLimitIsAnError(const FileLimitIsAnError&) = delete;
  FileLimitIsAnError& operator=(const FileLimitIsAnError&) = delete;
  ~FileLimitIsAnError() {
    if (::sigismember(&before_, SIGXFSZ) != 0) return;
    const int error = errno;  // of the call that failed
    const timespec now{};
    while (::sigtimedwait(&signal_, nullptr, &now) == SIGXFSZ) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  sigset_t signal_;
  sigset_t before_;
};

}  // namespace softnic
