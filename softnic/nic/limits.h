// SPDX-License-Identifier: Apache-2.0
// The limits of softnic devices, which ibv_device_attr reports and which creation of objects
// enforces.
#pragma once

#include <cstdint>

namespace softnic {

inline constexpr int kMaxQpWr = 16384;
inline constexpr int kMaxSge = 16;
inline constexpr std::uint32_t kMaxInline = 1024;
inline constexpr int kMaxSrqWr = 16384;
inline constexpr int kMaxCqe = 1 << 20;
inline constexpr std::uint32_t kMaxMessage = 1u << 30;
inline constexpr int kMaxRdAtomic = 16;

}  // namespace softnic
