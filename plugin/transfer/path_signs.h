// SPDX-License-Identifier: Apache-2.0
//
// The facts about a path of a comm by which SilenceWatch (plugin/recovery) decides whether the path
// still works, and what it keeps of the path.
#pragma once

#include <cstdint>

namespace beeline {

// Times are those of SilenceWatch.
struct PathSilence {
  std::uint32_t heard = 0;
  std::uint32_t doublings = 0;     // of the limit
  std::int64_t heard_ns = 0;       // when an answer was last noticed; 0: never
  std::int64_t owes_since_ns = 0;  // without an answer since
  std::int64_t wrong_ns = 0;       // when `doublings` last changed
};

struct PathSigns {
  bool is_up = false;
  bool owes_answer = false;      // a work request is under way whose completion is signaled
  std::uint32_t heard = 0;       // changes whenever something has completed
  std::int64_t expected_ns = 0;  // time in which all that is under way should complete; 0: unknown
  PathSilence* kept = nullptr;
};

}  // namespace beeline
