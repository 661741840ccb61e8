// SPDX-License-Identifier: Apache-2.0
#include "plugin/recovery/silence_watch.h"

namespace beeline {

void SilenceWatch::note(const PathSigns* signs, std::size_t paths) noexcept {
  for (std::size_t i = 0; i < paths; ++i) {
    Path& path = paths_[i];
    const bool has_answered = signs[i].heard != path.heard;
    if (has_answered) {
      path.heard = signs[i].heard;
      path.heard_ns = watched_ns_;
      quiet_since_ns_ = watched_ns_;
    }
    if (has_answered || !signs[i].is_up || !signs[i].owes_answer) {
      path.owes_since_ns = watched_ns_;
    }
    if (path.doublings != 0 && watched_ns_ - path.wrong_ns > times::kSilenceForgiveAfterNs) {
      --path.doublings;
      path.wrong_ns = watched_ns_;
    }
  }
}

SilenceWatch::Findings SilenceWatch::judge(const PathSigns* signs, std::size_t paths) noexcept {
  Findings found;
  bool is_any_owing = false;
  for (std::size_t i = 0; i < paths; ++i) {
    if (!signs[i].is_up || !signs[i].owes_answer) continue;
    is_any_owing = true;
    const Path& path = paths_[i];
    if (watched_ns_ - path.owes_since_ns < limit_of(path, signs[i])) continue;
    bool has_other_answered = false;
    for (std::size_t other = 0; other < paths; ++other) {
      has_other_answered |=
          other != i && signs[other].is_up && paths_[other].heard_ns > path.owes_since_ns;
    }
    if (has_other_answered) {
      found.silent = static_cast<std::uint8_t>(found.silent | 1U << i);
    } else {
      found.must_ask = true;
    }
  }
  if (!is_any_owing && watched_ns_ - quiet_since_ns_ >= times::kSilenceAskAfterNs) {
    quiet_since_ns_ = watched_ns_;
    found.must_ask = true;
  }
  return found;
}

std::int64_t SilenceWatch::limit_of(const Path& path, const PathSigns& signs) noexcept {
  const std::int64_t least = std::min(times::kSilenceLeastLimitNs << path.doublings,
                                      std::int64_t{times::kSilenceMostLimitNs});
  const std::int64_t first = path.heard_ns == 0 ? times::kSilenceFirstLimitNs : 0;
  return std::max({least, first, times::kSilenceExpectedTimes * signs.expected_ns});
}

void SilenceWatch::was_wrong_about(std::size_t path) noexcept {
  Path& wrong = paths_[path];
  if (times::kSilenceLeastLimitNs << wrong.doublings < times::kSilenceMostLimitNs)
    ++wrong.doublings;
  wrong.wrong_ns = watched_ns_;
}

}  // namespace beeline
