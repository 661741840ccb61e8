// SPDX-License-Identifier: Apache-2.0
//
// Reads the kernel's counters of the calling thread.
#include "tests/plugin/scale/call_meter.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

namespace beeline::test {
namespace {

constexpr double kNsPerUs = 1e3;

}  // namespace

const char* to_string(ControlCall call) {
  switch (call) {
    case ControlCall::kListen: return "listen";
    case ControlCall::kConnect: return "connect";
    case ControlCall::kAccept: return "accept";
    case ControlCall::kRegMr: return "regMr";
    case ControlCall::kDeregMr: return "deregMr";
    case ControlCall::kCloseListen: return "closeListen";
    case ControlCall::kCloseSend: return "closeSend";
    case ControlCall::kCloseRecv: return "closeRecv";
  }
  return "?";
}

CallMeter::Reading CallMeter::read() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return {.cpu_ns = std::int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec,
          .sleeps = usage.ru_nvcsw};
}

void CallMeter::note(ControlCall call, const Reading& before) {
  const Reading now = read();
  Row& row = rows_[static_cast<std::size_t>(call)];
  ++row.calls;
  row.sleeps += static_cast<std::uint64_t>(now.sleeps - before.sleeps);
  row.total_ns += now.cpu_ns - before.cpu_ns;
  if (now.cpu_ns - before.cpu_ns > kSlowNs) ++row.slow;
  row.most_ns = std::max(row.most_ns, now.cpu_ns - before.cpu_ns);
}

std::string CallMeter::table() const {
  std::string text = "  call            calls   sleeps     slow   most CPU us   mean CPU us\n";
  for (std::size_t i = 0; i < kControlCalls; ++i) {
    const Row& row = rows_[i];
    if (row.calls == 0) continue;
    std::array<char, 128> line{};
    std::snprintf(
        line.data(), line.size(), "  %-12s %8llu %8llu %8llu %13.1f %13.2f\n",
        to_string(static_cast<ControlCall>(i)), static_cast<unsigned long long>(row.calls),
        static_cast<unsigned long long>(row.sleeps), static_cast<unsigned long long>(row.slow),
        static_cast<double>(row.most_ns) / kNsPerUs,
        static_cast<double>(row.total_ns) / kNsPerUs / static_cast<double>(row.calls));
    text += line.data();
  }
  return text;
}

}  // namespace beeline::test
