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
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/check/assert.h"
#include "plugin/repair/times.h"
#include "plugin/transfer/path_signs.h"
#include "plugin/wire/limits.h"

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

  // `signs_of(i)` gives the PathSigns of path i.
  template <class SignsOf>
  Findings look(std::size_t paths, std::int64_t now_ns, SignsOf&& signs_of) {
    BL_ASSERT(now_ns >= looked_ns_, "time does not go back");
    std::array<PathSigns, wire::kMaxPaths> signs;
    for (std::size_t i = 0; i < paths; ++i) signs[i] = signs_of(i);
    watched_ns_ += std::min(now_ns - looked_ns_, times::kSilenceMostCountedNs);
    looked_ns_ = now_ns;
    note(signs.data(), paths);
    return judge(signs.data(), paths);
  }

  // The path worked again right after it had been taken for silent.
  void was_wrong_about(std::size_t path) noexcept;

 private:
  // Times are those of watched_ns_.
  struct Path {
    std::uint32_t heard = 0;
    std::uint32_t doublings = 0;     // of the limit
    std::int64_t heard_ns = 0;       // when an answer was last noticed; 0: never
    std::int64_t owes_since_ns = 0;  // without an answer since
    std::int64_t wrong_ns = 0;       // when `doublings` last changed
  };

  void note(const PathSigns* signs, std::size_t paths) noexcept;
  Findings judge(const PathSigns* signs, std::size_t paths) noexcept;
  static std::int64_t limit_of(const Path& path, const PathSigns& signs) noexcept;

  std::array<Path, wire::kMaxPaths> paths_{};
  std::int64_t looked_ns_ = 0;
  std::int64_t watched_ns_ = 0;      // the time that counts
  std::int64_t quiet_since_ns_ = 0;  // no path has answered
};

}  // namespace beeline
