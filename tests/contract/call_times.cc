// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/call_times.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <new>

namespace beeline::test {
namespace {

struct Times {
  std::atomic<uint64_t> calls{0};
  std::atomic<int64_t> longest_ns{0};
};
using Table = std::array<Times, kCalls>;

constexpr std::array<const char*, kCalls> kNames = {
    "init",  "finalize", "listen", "connect", "accept",    "regMr",     "deregMr",
    "isend", "irecv",    "iflush", "test",    "closeSend", "closeRecv", "closeListen"};

Table* call_table = nullptr;

}  // namespace

void share_call_times() {
  void* const memory =
      mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  BL_MUST(memory != MAP_FAILED);
  call_table = new (memory) Table;
}

void note_call_time(Call call, std::chrono::nanoseconds time) {
  if (call_table == nullptr) return;
  Times& times = (*call_table)[static_cast<size_t>(call)];
  times.calls.fetch_add(1, std::memory_order_relaxed);
  int64_t longest = times.longest_ns.load(std::memory_order_relaxed);
  while (longest < time.count() && !times.longest_ns.compare_exchange_weak(
                                       longest, time.count(), std::memory_order_relaxed)) {
  }
}

std::string call_times_text() {
  std::string text;
  for (size_t i = 0; call_table != nullptr && i < kCalls; ++i) {
    const uint64_t calls = (*call_table)[i].calls.load(std::memory_order_relaxed);
    if (calls == 0) continue;
    std::array<char, 80> line{};
    std::snprintf(line.data(), line.size(), "%-12s %9llu calls, the longest %9.1f us\n", kNames[i],
                  static_cast<unsigned long long>(calls),
                  static_cast<double>((*call_table)[i].longest_ns.load()) / 1000.0);
    text += line.data();
  }
  return text;
}

}  // namespace beeline::test
