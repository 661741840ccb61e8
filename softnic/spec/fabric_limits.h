// SPDX-License-Identifier: Apache-2.0
//
// The most that a fabric can have. The reader of the fabric file refuses more, and the arrays of
// the shared segment (softnic/fabric/layout.h) have these sizes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softnic {

inline constexpr std::uint32_t kMaxHosts = 128;
inline constexpr std::uint32_t kMaxDevices = 1024;
inline constexpr std::uint32_t kMaxPorts = 2;  // of a device
inline constexpr std::uint32_t kMaxGids = 16;  // of a port
inline constexpr std::size_t kNameLen =
    64;  // of a host, device or network, with the zero at its end

}  // namespace softnic
