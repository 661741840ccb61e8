// SPDX-License-Identifier: Apache-2.0
//
// The limits of a device, which are those of real ones.
#pragma once

#include <cstdint>

namespace nullverbs {

inline constexpr std::uint32_t kMaxQpWr = 32'768;
inline constexpr std::uint32_t kMaxSge = 16;  // of a send; a receive has one
inline constexpr std::uint32_t kMaxCqe = 1 << 22;
inline constexpr std::uint32_t kMaxInline = 256;
inline constexpr std::uint32_t kMaxMessage = std::uint32_t{1} << 30;

}  // namespace nullverbs
