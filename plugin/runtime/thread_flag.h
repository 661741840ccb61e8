// SPDX-License-Identifier: Apache-2.0
//
// A bool for each thread, false at first. Not `thread_local`: the loader makes such a variable of a
// plugin in the middle of the first access, and the leak checker of g++ 12 crashes on the memory.
#pragma once

#include <pthread.h>

namespace beeline {

// Always false if the process has no key left.
class ThreadFlag {
 public:
  ThreadFlag() noexcept : has_key_(pthread_key_create(&key_, nullptr) == 0) {}
  ThreadFlag(const ThreadFlag&) = delete;
  ThreadFlag& operator=(const ThreadFlag&) = delete;
  ~ThreadFlag() {
    if (has_key_) pthread_key_delete(key_);
  }

  // Returns the value before.
  bool exchange(bool value) noexcept {
    if (!has_key_) return false;
    const bool before = pthread_getspecific(key_) != nullptr;
    if (value != before) pthread_setspecific(key_, value ? this : nullptr);
    return before;
  }

 private:
  pthread_key_t key_ = 0;
  const bool has_key_;
};

}  // namespace beeline
