// SPDX-License-Identifier: Apache-2.0
//
// Types that describe a port, in messages as well as in the device floor. Their numbers travel: an
// enumerator keeps its place, and new ones go to the end.
#pragma once

#include <array>
#include <cstdint>
#include <string>

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

// One valid entry of a port's GID table. Tables are sparse, so `index` is not the position in a
// list. message_bytes.h explains fields().
struct GidEntry {
  std::uint16_t index = 0;
  GidType type = GidType::kIb;
  Gid gid{};
  std::string ndev = {};  // its network interface; empty if not known. It does not travel

  static void fields(auto& io, auto& entry) {
    io(entry.index);
    io.choice(entry.type, GidType::kRoceV2);
    io(entry.gid);
  }
  bool operator==(const GidEntry&) const = default;
};

struct GidRange {
  Gid base{};
  std::uint8_t prefix = 0;  // 0 to 128 bits of the GID: 96 more than in the text of an IPv4 range

  static void fields(auto& io, auto& range) {
    io(range.base);
    io.within(range.prefix, 0, 128);
  }
  bool operator==(const GidRange&) const = default;
};

}  // namespace beeline::wire
