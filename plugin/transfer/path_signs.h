// SPDX-License-Identifier: Apache-2.0
//
// The facts about a path of a comm by which SilenceWatch (plugin/recovery) decides whether the path
// still works.
#pragma once

#include <cstdint>

namespace beeline {

struct PathSigns {
  bool is_up = false;
  bool owes_answer = false;      // a work request is under way whose completion is signaled
  std::uint32_t heard = 0;       // changes whenever something has completed
  std::int64_t expected_ns = 0;  // time in which all that is under way should complete; 0: unknown
};

}  // namespace beeline
