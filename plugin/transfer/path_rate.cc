// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/path_rate.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace beeline {
namespace {

// One window raises the rate by at most this factor: if the thread polls late, one window may count
// completions that belong to a longer time.
constexpr double kMostRaise = 1.25;
// A mean delay of this many latencies shows that data has waited for other data.
constexpr double kQueued = 2;
// A window of this time counts without another one to confirm it, and then divides the rate by this
// at most.
constexpr double kMostFall = 16;
constexpr double kLongNs = 8.0 * kNsPerMs;
// The latency of another network path, or of a busy host, may become longer.
constexpr double kLatencyDrift = 1.01;
// As much as a rail carries in this time may be outstanding. Longer if the caller's thread polls
// rarely, as on a machine with fewer processors than busy threads; then less again, by and by.
constexpr double kHeldNs = 2.0 * kNsPerMs;
constexpr double kMostHeldNs = 16.0 * kNsPerMs;
constexpr double kHeldDecayNs = 200.0 * kNsPerMs;
constexpr std::uint64_t kLeastHeld = std::uint64_t{512} << 10;

}  // namespace

// The claimed speed is not a measurement, so the first window that is lower replaces it at once.
// Until then little is outstanding on a rail, however fast it claims to be.
PathRate::PathRate(double bytes_per_ns) noexcept
    : rate_(bytes_per_ns),
      ns_per_byte_(1 / bytes_per_ns),
      most_outstanding_(kLeastHeld),
      most_held_ns_(kHeldNs),
      low_rate_(bytes_per_ns / 1e9) {}

void PathRate::measure(double& latency_ns) noexcept {
  const double bytes = static_cast<double>(window_bytes_);
  const double busy_ns = static_cast<double>(busy_ns_);
  if (busy_ns > 0) {
    const double delay_ns = waited_ / bytes;
    latency_ns = std::min({latency_ns * kLatencyDrift, delay_ns, double{kPatienceNs}});
    most_held_ns_ = std::max(most_held_ns_ * (1 - busy_ns / kHeldDecayNs), kHeldNs);
    set(next_rate(bytes, busy_ns, delay_ns, latency_ns));
  }
  open_window();
}

// Each post to the idle rail has cost the time in which the first bytes travelled. Whether that was
// all of the latency is not known, so the rate is between two bounds.
double PathRate::next_rate(double bytes, double busy_ns, double delay_ns,
                           double latency_ns) noexcept {
  const double least = bytes / busy_ns;
  const double most = bytes / (busy_ns - std::min(restarts_ * latency_ns, busy_ns / 2));
  if (least >= rate_) {
    low_rate_ = 0;
    return std::min(least, rate_ * kMostRaise);
  }
  if (most >= rate_ || delay_ns < kQueued * latency_ns) return rate_;
  const double before = std::exchange(low_rate_, most);
  if (before > 0) return std::max(before, most);
  // One low window may be an accident of scheduling, but not if it is long. Still, a rail that has
  // stood still for a while is not as slow as that window says.
  return busy_ns >= kLongNs ? std::max(most, rate_ / kMostFall) : rate_;
}

void PathRate::ran_dry() noexcept {
  most_held_ns_ = std::min(2 * most_held_ns_, kMostHeldNs);
  set(rate_);
}

void PathRate::set(double bytes_per_ns) noexcept {
  rate_ = bytes_per_ns;
  ns_per_byte_ = 1 / bytes_per_ns;
  most_outstanding_ =
      std::max(static_cast<std::uint64_t>(bytes_per_ns * most_held_ns_), kLeastHeld);
}

void PathRate::open_window() noexcept {
  window_start_ns_ = last_ns_;
  busy_ns_ = 0;
  window_bytes_ = 0;
  waited_ = 0;
  restarts_ = 0;
}

}  // namespace beeline
