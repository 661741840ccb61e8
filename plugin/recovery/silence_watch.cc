// SPDX-License-Identifier: Apache-2.0
#include "plugin/recovery/silence_watch.h"

namespace beeline {

void SilenceWatch::note(std::span<const PathSigns> paths) noexcept {
  for (const PathSigns& signs : paths) {
    PathSilence& path = *signs.kept;
    const bool has_answered = signs.heard != path.heard;
    if (has_answered) {
      path.heard = signs.heard;
      path.heard_ns = watched_ns_;
      quiet_since_ns_ = watched_ns_;
    }
    if (has_answered || !signs.is_up || !signs.owes_answer) {
      path.owes_since_ns = watched_ns_;
    }
    if (path.doublings != 0 && watched_ns_ - path.wrong_ns > times::kSilenceForgiveAfterNs) {
      --path.doublings;
      path.wrong_ns = watched_ns_;
    }
  }
}

SilenceWatch::Findings SilenceWatch::judge(std::span<const PathSigns> paths) noexcept {
  Findings found;
  bool is_any_owing = false;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const PathSigns& path = paths[i];
    if (!path.is_up || !path.owes_answer) continue;
    is_any_owing = true;
    const std::int64_t owes_since_ns = path.kept->owes_since_ns;
    if (watched_ns_ - owes_since_ns < limit_of(path)) continue;
    bool has_other_answered = false;
    for (const PathSigns& other : paths) {
      has_other_answered |= &other != &path && other.is_up && other.kept->heard_ns > owes_since_ns;
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

std::int64_t SilenceWatch::limit_of(const PathSigns& path) noexcept {
  const std::int64_t least = std::min(times::kSilenceLeastLimitNs << path.kept->doublings,
                                      std::int64_t{times::kSilenceMostLimitNs});
  const std::int64_t first = path.kept->heard_ns == 0 ? times::kSilenceFirstLimitNs : 0;
  return std::max({least, first, times::kSilenceExpectedTimes * path.expected_ns});
}

void SilenceWatch::was_wrong_about(PathSilence& path) const noexcept {
  if (times::kSilenceLeastLimitNs << path.doublings < times::kSilenceMostLimitNs) ++path.doublings;
  path.wrong_ns = watched_ns_;
}

}  // namespace beeline
