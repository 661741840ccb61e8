// SPDX-License-Identifier: Apache-2.0
//
// Notices a path that has become silent: its device owes answers and gives none, not even an error,
// while another path of the same comm works. A device may retry for seconds or longer before it
// reports that. Whether the other end is slow or the network loses everything cannot be told from
// one path, so a path is silent only in comparison with another.
//
// A thread that was stopped, or had nothing to wait for, has not waited all that time; a thread
// that gets little of a busy processor has. So of the time between two looks, only a part counts.
//
// There is no clock in here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/check/assert.h"
#include "plugin/repair/times.h"
#include "plugin/transfer/path_signs.h"

namespace beeline {

class SilenceWatch {
 public:
  struct Findings {
    std::uint8_t silent = 0;  // a bit for each path
    bool must_ask = false;    // paths without work are to be given some
  };

  bool is_due(std::int64_t now_ns) const noexcept {
    return now_ns - looked_ns_ >= times::kSilenceLookEveryNs;
  }

  Findings look(std::span<const PathSigns> paths, std::int64_t now_ns) {
    BL_ASSERT(now_ns >= looked_ns_, "time does not go back");
    watched_ns_ += std::min(now_ns - looked_ns_, times::kSilenceMostCountedNs);
    looked_ns_ = now_ns;
    note(paths);
    return judge(paths);
  }

  // The path worked again right after it had been taken for silent.
  void was_wrong_about(PathSilence& path) const noexcept;

 private:
  void note(std::span<const PathSigns> paths) noexcept;
  Findings judge(std::span<const PathSigns> paths) noexcept;
  static std::int64_t limit_of(const PathSigns& path) noexcept;

  std::int64_t looked_ns_ = 0;
  std::int64_t watched_ns_ = 0;      // the time that counts
  std::int64_t quiet_since_ns_ = 0;  // no path has answered
};

}  // namespace beeline
