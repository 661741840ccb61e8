// SPDX-License-Identifier: Apache-2.0
//
// How much of everything one comm may have in flight. Both ends are built with the same numbers: a
// change here is a change of the protocol's version.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beeline::wire {

inline constexpr std::size_t kMaxRails = 8;
inline constexpr std::size_t kMaxReceives = 8;  // buffers in one irecv: NCCL's maxRecvs
inline constexpr std::size_t kMaxGroups = 32;   // irecv calls in flight: NCCL_NET_MAX_REQUESTS
inline constexpr std::size_t kMaxLines = kMaxGroups * kMaxReceives;

// One isend or irecv buffer: NCCL's MAX_NET_SIZE.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;

// LL128 keeps a flag in every 128 bytes: a message is cut at multiples of this and nowhere else.
inline constexpr std::size_t kCutBytes = 128;

}  // namespace beeline::wire
