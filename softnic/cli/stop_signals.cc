// SPDX-License-Identifier: Apache-2.0
#include "softnic/cli/stop_signals.h"

#include <algorithm>

#include "common/base/clock.h"

namespace softnic::cli {

StopSignals::StopSignals() : started_ns_(beeline::now_ns()) {
  sigemptyset(&awaited_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&awaited_, number);
  ::sigprocmask(SIG_BLOCK, &awaited_, nullptr);
}

bool StopSignals::wait_until(std::uint64_t at_ns) {
  while (signal_ == 0) {
    const std::int64_t left =
        static_cast<std::int64_t>(at_ns) - static_cast<std::int64_t>(elapsed_ns());
    const std::int64_t wait = std::max<std::int64_t>(left, 0);
    const timespec time{wait / beeline::kNsPerSec, wait % beeline::kNsPerSec};
    signal_ = std::max(::sigtimedwait(&awaited_, nullptr, &time), 0);
    if (left <= 0) break;
  }
  return signal_ == 0;
}

std::string StopSignals::signal_name() const {
  switch (signal_) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGHUP: return "SIGHUP";
    default: return "no signal";
  }
}

std::uint64_t StopSignals::elapsed_ns() const {
  return static_cast<std::uint64_t>(beeline::now_ns() - started_ns_);
}

}  // namespace softnic::cli
