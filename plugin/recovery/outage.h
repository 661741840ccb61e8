// SPDX-License-Identifier: Apache-2.0
//
// How long a comm has had no path that works, when that is to be logged again, and when it is too
// long. There is no clock in here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugin/recovery/times.h"

namespace beeline {

class Outage {
 public:
  static constexpr std::int64_t kNever = INT64_MAX;

  enum class News : std::uint8_t {
    kNone,
    kStillWaiting,  // it is time to log that
    kTooLong,       // returned once
  };

  // `give_up_ns` is how long the comm may wait; 0: for ever.
  explicit constexpr Outage(std::int64_t give_up_ns) noexcept : give_up_ns_(give_up_ns) {}

  News look(bool is_waiting, std::int64_t now_ns) noexcept {
    if (!is_waiting) {
      since_ns_ = 0;
      return News::kNone;
    }
    if (since_ns_ == 0) since_ns_ = logged_ns_ = now_ns;
    if (now_ns >= end_ns()) {
      give_up_ns_ = 0;
      return News::kTooLong;
    }
    if (now_ns - logged_ns_ < times::kOutageLogEveryNs) return News::kNone;
    logged_ns_ = now_ns;
    return News::kStillWaiting;
  }
  bool has_lasted(std::int64_t length, std::int64_t now_ns) const noexcept {
    return since_ns_ != 0 && length_ns(now_ns) >= length;
  }
  // When it will have lasted that long.
  std::int64_t lasts_at_ns(std::int64_t length) const noexcept {
    return since_ns_ == 0 ? kNever : since_ns_ + length;
  }
  std::int64_t length_ns(std::int64_t now_ns) const noexcept { return now_ns - since_ns_; }
  // When look() has to be called again.
  std::int64_t due_ns() const noexcept {
    return since_ns_ == 0 ? kNever : std::min(logged_ns_ + times::kOutageLogEveryNs, end_ns());
  }

 private:
  std::int64_t end_ns() const noexcept {
    return give_up_ns_ == 0 ? kNever : since_ns_ + give_up_ns_;
  }

  std::int64_t give_up_ns_;
  std::int64_t since_ns_ = 0;  // 0: some path works
  std::int64_t logged_ns_ = 0;
};

}  // namespace beeline
