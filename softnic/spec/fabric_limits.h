// SPDX-License-Identifier: Apache-2.0
// Limits of a fabric. The reader of the fabric file refuses more, and the arrays of the shared
// segment (softnic/fabric/layout.h) have these sizes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softnic {

inline constexpr std::uint32_t kMaxHosts = 128;
inline constexpr std::uint32_t kMaxDevices = 1024;
inline constexpr std::uint32_t kMaxPorts = 2;  // of a device
inline constexpr std::uint32_t kMaxGids = 16;  // of a port
inline constexpr std::size_t kNameLen = 64;    // with the terminating zero

}  // namespace softnic
