// SPDX-License-Identifier: Apache-2.0
#include "tools/export/stop_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <utility>

#include "common/base/clock.h"

namespace beeline::exporter {

Result<StopSignals> StopSignals::catch_them() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_errno("create a descriptor for signals");
  if (::sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) return fail_errno("block SIGTERM");
  return StopSignals(std::move(fd));
}

bool StopSignals::come_until(std::int64_t end_ns) const noexcept {
  constexpr std::int64_t kLongestMs = 60'000;
  pollfd wait = {fd(), POLLIN, 0};
  for (;;) {
    const std::int64_t left_ms = (end_ns - now_ns() + kNsPerMs - 1) / kNsPerMs;
    const auto pause = static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, kLongestMs));
    if (::poll(&wait, 1, pause) > 0) return true;
    if (left_ms <= kLongestMs && now_ns() >= end_ns) return false;
  }
}

}  // namespace beeline::exporter
