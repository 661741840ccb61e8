// SPDX-License-Identifier: Apache-2.0
//
// Polling a completion queue: up to kMostCompletions at a time.
#pragma once

#include <infiniband/verbs.h>

#include <array>

namespace beeline {

inline constexpr int kMostCompletions = 16;
using Completions = std::array<ibv_wc, kMostCompletions>;

// Returns how many were found; if kMostCompletions, there may be more. Negative: the queue cannot
// be read.
inline int poll(ibv_cq* cq, Completions& completions) {
  return ibv_poll_cq(cq, kMostCompletions, completions.data());
}

}  // namespace beeline
