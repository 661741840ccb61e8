// SPDX-License-Identifier: Apache-2.0
//
// Measures what calls cost the thread that makes them: whether it slept in a call, and the longest
// CPU time of one. It uses the kernel's counters, so that a busy machine does not matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace beeline::test {

enum class ControlCall : std::uint8_t {
  kListen,
  kConnect,
  kAccept,
  kRegMr,
  kDeregMr,
  kCloseListen,
  kCloseSend,
  kCloseRecv,
};
inline constexpr std::size_t kControlCalls = 8;
const char* to_string(ControlCall call);

// Threads: one.
class CallMeter {
 public:
  static constexpr std::int64_t kSlowNs = 1'000'000;  // of CPU time

  struct Row {
    std::uint64_t calls = 0;
    std::uint64_t sleeps = 0;  // voluntary context switches
    std::uint64_t slow = 0;    // that took longer than kSlowNs
    std::int64_t most_ns = 0;  // of CPU time, in one call
    std::int64_t total_ns = 0;
  };

  template <class Act>
  auto around(ControlCall call, Act&& act) {
    const Reading before = read();
    auto result = act();
    note(call, before);
    return result;
  }

  const Row& row(ControlCall call) const { return rows_[static_cast<std::size_t>(call)]; }
  std::string table() const;

 private:
  struct Reading {
    std::int64_t cpu_ns;
    std::int64_t sleeps;
  };
  static Reading read();
  void note(ControlCall call, const Reading& before);

  std::array<Row, kControlCalls> rows_{};
};

}  // namespace beeline::test
