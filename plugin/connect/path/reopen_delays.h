// SPDX-License-Identifier: Apache-2.0
//
// How long to wait before a device that is gone is looked for. The context of each device that was
// opened stays open (decision 0026), so one that fails as soon as it is back is opened less and
// less often.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"

namespace beeline {

class ReopenDelays {
 public:
  static constexpr std::int64_t kFirstNs = 100 * kNsPerMs;
  static constexpr std::int64_t kLongestNs = 600 * kNsPerSec;
  static constexpr std::int64_t kBriefLifeNs = kNsPerSec;

  // The device has failed.
  std::int64_t after_failure(const std::string& ibdev, std::int64_t now_ns) {
    Last& last = last_[ibdev];
    const bool was_brief = last.opened_ns && now_ns - *last.opened_ns < kBriefLifeNs;
    last.delay_ns = was_brief ? std::min(2 * last.delay_ns, kLongestNs) : kFirstNs;
    return last.delay_ns;
  }
  void opened(const std::string& ibdev, std::int64_t now_ns) { last_[ibdev].opened_ns = now_ns; }

 private:
  struct Last {
    std::optional<std::int64_t> opened_ns;
    std::int64_t delay_ns = 0;  // after the last failure
  };
  std::map<std::string, Last> last_;
};

}  // namespace beeline
