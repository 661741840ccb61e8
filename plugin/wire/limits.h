// SPDX-License-Identifier: Apache-2.0
//
// The limits of one comm. Both ends must have the same values, so a change here needs a new version
// of the protocol.
#pragma once

#include <cstddef>

namespace beeline::wire {

inline constexpr std::size_t kMaxRails = 8;
inline constexpr std::size_t kMaxPaths = 8;  // each rail of both ends is part of one path at least
static_assert(kMaxPaths >= kMaxRails);
inline constexpr std::size_t kMaxReceives = 8;  // buffers in one irecv (NCCL's maxRecvs)
inline constexpr std::size_t kMaxGroups = 32;   // irecv calls in flight (NCCL_NET_MAX_REQUESTS)
// Buffers granted and not filled. Beyond that irecv answers "call again" (decision 0019).
inline constexpr std::size_t kMaxLines = 128;

// The largest buffer of isend and irecv (NCCL's MAX_NET_SIZE).
inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;

// A message is only cut at multiples of this, because NCCL's LL128 protocol has a flag in every 128
// bytes.
inline constexpr std::size_t kCutBytes = 128;

}  // namespace beeline::wire
