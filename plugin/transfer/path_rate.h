// SPDX-License-Identifier: Apache-2.0
//
// How fast the paths of a group (scheduler.h) carry data, measured from what was posted and what
// has completed. Below, "rail" means these paths together. There is no clock in here: the caller
// says when something happened.
//
// The measure is bytes completed over the time in which the rail had work. It is taken over windows
// of at least half a millisecond that begin and end with a completion, or while the rail is idle.
// With little to do, a rail shows less than it can carry: the latency of the network is part of the
// time. Such a window can only raise the rate. It can lower the rate if data has waited for other
// data, which the mean delay shows, and only together with the window before it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"

namespace beeline {

class PathRate {
 public:
  // A rail without progress may be late by this much before it counts as slower: for the latency of
  // the network, and for a thread that polls now and then.
  static constexpr std::int64_t kPatienceNs = 50 * kNsPerUs;

  // The guess holds until the first window ends.
  explicit PathRate(double bytes_per_ns = 1) noexcept;

  void posted(std::uint64_t bytes, std::int64_t now_ns) noexcept {
    advance(now_ns);
    if (outstanding_ == 0) restart();
    outstanding_ += bytes;
  }
  // Completions that were found by one poll have one time.
  void completed(std::uint64_t bytes, std::int64_t now_ns) noexcept {
    advance(now_ns);
    outstanding_ -= std::min(bytes, outstanding_);
    window_bytes_ += bytes;
    progress_ns_ = now_ns;
  }

  void lost(std::uint64_t bytes) noexcept { outstanding_ -= std::min(bytes, outstanding_); }

  // Whether a window has ended. To be asked before posted() and completed(), and followed by
  // measure().
  bool is_due(std::int64_t now_ns) const noexcept {
    if (last_ns_ != progress_ns_ || now_ns <= last_ns_ || window_bytes_ == 0) return false;
    return (outstanding_ == 0 ? now_ns : last_ns_) - window_start_ns_ >= kWindowNs;
  }
  // `latency_ns`: the shortest mean delay that a window of any rail of this comm has seen; this
  // window may lower it.
  void measure(double& latency_ns) noexcept;

  std::uint64_t outstanding() const noexcept { return outstanding_; }
  // The most that should be outstanding: what a rail holds when it slows down will be late.
  std::uint64_t most_outstanding() const noexcept { return most_outstanding_; }
  // Nothing was outstanding any more, only because of most_outstanding(): the caller polls too
  // rarely for it.
  void ran_dry() noexcept;
  double bytes_per_ns() const noexcept { return rate_; }
  // Includes lateness: if completions are overdue, the rail counts as slower at once.
  double ns_per_byte(std::int64_t now_ns) const noexcept {
    const double late_ns = static_cast<double>(now_ns - progress_ns_ - kPatienceNs);
    const double held = static_cast<double>(outstanding_);
    if (held * ns_per_byte_ >= late_ns || outstanding_ == 0) return ns_per_byte_;
    return late_ns / held;
  }

 private:
  static constexpr std::int64_t kWindowNs = kNsPerMs / 2;

  void advance(std::int64_t now_ns) noexcept {
    if (outstanding_ != 0) {
      const std::int64_t passed_ns = now_ns - last_ns_;
      busy_ns_ += passed_ns;
      waited_ += static_cast<double>(passed_ns) * static_cast<double>(outstanding_);
    }
    last_ns_ = now_ns;
  }
  void restart() noexcept {
    progress_ns_ = last_ns_;
    ++restarts_;
    if (window_bytes_ == 0 && busy_ns_ == 0) window_start_ns_ = last_ns_;
  }
  double next_rate(double bytes, double busy_ns, double delay_ns, double latency_ns) noexcept;
  void set(double bytes_per_ns) noexcept;
  void open_window() noexcept;

  double rate_;
  double ns_per_byte_;
  std::uint64_t most_outstanding_;
  double most_held_ns_;  // the same as a time
  std::uint64_t outstanding_ = 0;
  std::int64_t last_ns_ = 0;      // when something was posted or completed
  std::int64_t progress_ns_ = 0;  // when something completed, or was posted to the idle rail
  double low_rate_;               // of the last window, if it was lower than the rate; otherwise 0

  // --- The window: since the last measure ---
  std::int64_t window_start_ns_ = 0;
  std::int64_t busy_ns_ = 0;        // time with something outstanding
  std::uint64_t window_bytes_ = 0;  // completed
  double waited_ = 0;               // bytes outstanding, summed over time
  std::uint32_t restarts_ = 0;      // posts to the idle rail
};

}  // namespace beeline
