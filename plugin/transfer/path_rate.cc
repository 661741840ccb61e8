// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/path_rate.h"

#include <algorithm>
#include <cstdint>

namespace beeline {
namespace {

// One window raises the rate by this much at most: a thread that polls late may find completions
// of more time than the window has.
constexpr double kMostRaise = 1.25;
// A mean delay of this many latencies shows that data has waited for other data.
constexpr double kQueued = 2;
// The latency of another network path, or of a busy host, may become longer.
constexpr double kLatencyDrift = 1.01;
constexpr double kMostHeldNs = 2.0 * kNsPerMs;
constexpr std::uint64_t kLeastHeld = std::uint64_t{512} << 10;

}  // namespace

// The guess is no measurement: the first window that is lower replaces it, as if another one had
// been as low before. Until then a rail does not hold much, however fast it claims to be.
PathRate::PathRate(double bytes_per_ns) noexcept
    : rate_(bytes_per_ns),
      ns_per_byte_(1 / bytes_per_ns),
      most_outstanding_(kLeastHeld),
      low_rate_(bytes_per_ns / 1e9) {}

void PathRate::measure(double& latency_ns) noexcept {
  const double bytes = static_cast<double>(window_bytes_);
  const double busy_ns = static_cast<double>(busy_ns_);
  if (busy_ns_ <= 0) return open_window();
  const double delay_ns = waited_ / bytes;
  latency_ns = std::min({latency_ns * kLatencyDrift, delay_ns, static_cast<double>(kPatienceNs)});
  // Each post to the idle rail has cost the time in which the first bytes travelled. Whether that
  // was all of the latency is not known, so the rate is between two bounds.
  const double least = bytes / busy_ns;
  const double idle_ns = std::min(restarts_ * latency_ns, busy_ns / 2);
  const double most = bytes / (busy_ns - idle_ns);
  if (least >= rate_) {
    set(std::min(least, rate_ * kMostRaise));
    low_rate_ = 0;
  } else if (most < rate_ && delay_ns >= kQueued * latency_ns) {
    lower(most);
  }
  open_window();
}

// One low window may be an accident of scheduling; two are not.
void PathRate::lower(double bytes_per_ns) noexcept {
  if (low_rate_ > 0) set(std::max(low_rate_, bytes_per_ns));
  low_rate_ = bytes_per_ns;
}

void PathRate::set(double bytes_per_ns) noexcept {
  rate_ = bytes_per_ns;
  ns_per_byte_ = 1 / bytes_per_ns;
  most_outstanding_ = std::max(static_cast<std::uint64_t>(bytes_per_ns * kMostHeldNs), kLeastHeld);
}

void PathRate::open_window() noexcept {
  window_start_ns_ = last_ns_;
  busy_ns_ = 0;
  window_bytes_ = 0;
  waited_ = 0;
  restarts_ = 0;
}

}  // namespace beeline
