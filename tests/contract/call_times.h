// SPDX-License-Identifier: Apache-2.0
//
// Records the longest duration of each plugin call over all processes of a test program, in memory
// that forked processes share.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "tests/support/must.h"

namespace beeline::test {

enum class Call : size_t {
  kInit,
  kFinalize,
  kListen,
  kConnect,
  kAccept,
  kRegMr,
  kDeregMr,
  kIsend,
  kIrecv,
  kIflush,
  kTest,
  kCloseSend,
  kCloseRecv,
  kCloseListen,
};
inline constexpr size_t kCalls = 14;

// Call it once before the first fork.
void share_call_times();
void note_call_time(Call call, std::chrono::nanoseconds time);
// One line for each call that was made: how often, and the longest.
std::string call_times_text();

// Measures the scope in which it is declared.
class Timed {
 public:
  explicit Timed(Call call) : call_(call), start_(Clock::now()) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() { note_call_time(call_, Clock::now() - start_); }

 private:
  Call call_;
  Clock::time_point start_;
};

}  // namespace beeline::test
