// SPDX-License-Identifier: Apache-2.0
//
// One look at a completion queue takes many completions.
#pragma once

#include <infiniband/verbs.h>

#include <array>

namespace beeline {

inline constexpr int kMostCompletions = 16;
using Completions = std::array<ibv_wc, kMostCompletions>;

// How many were found; all places filled means that there may be more. Negative: the queue cannot
// be read.
inline int look_at(ibv_cq* cq, Completions& completions) {
  return ibv_poll_cq(cq, kMostCompletions, completions.data());
}

}  // namespace beeline
