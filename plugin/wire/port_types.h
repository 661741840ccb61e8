// SPDX-License-Identifier: Apache-2.0
//
// Types that describe a port, in messages as well as in the device floor. Their numbers travel: an
// enumerator keeps its place, and new ones go to the end.
#pragma once

#include <array>
#include <cstdint>

namespace beeline::wire {

enum class LinkLayer : std::uint8_t { kInfiniBand, kEthernet };
enum class Transport : std::uint8_t { kInfiniBand, kRoce, kIwarp };
enum class GidType : std::uint8_t { kIb, kRoceV1, kRoceV2 };
enum class AddressFamily : std::uint8_t { kUnset, kIpv4, kIpv6 };

// How the sender announces the last write of a message: what the devices at both ends can do.
enum class Notify : std::uint8_t {
  kImmediate,          // the data carries the immediate
  kNoticeAfterRouted,  // as kImmediate up to the adaptive-routing threshold, a notice above it
  kNotice,             // no immediates (iWARP): a SEND behind the data
};

using Gid = std::array<std::uint8_t, 16>;

}  // namespace beeline::wire
