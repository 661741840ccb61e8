// SPDX-License-Identifier: Apache-2.0
//
// The versions of the protocol that this build of Beeline speaks. The handle, HELLO and REFUSE
// carry this range and begin with the same bytes in every version, so that two builds that have no
// version in common can say so. message_bytes.h explains fields().
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace beeline::wire {

inline constexpr std::uint64_t kMagic = 0x1e11'7c0f'bee1'14e5;

struct VersionRange {
  std::uint16_t least = 1;
  std::uint16_t most = 1;

  static void fields(auto& io, auto& range) {
    io.constant(kMagic);
    io.within(range.least, 1, UINT16_MAX);
    io.within(range.most, range.least, UINT16_MAX);
  }
  bool operator==(const VersionRange&) const = default;
};
// Version 1: one path for each comm. Version 2: up to kMaxPaths, of which some may be missing.
inline constexpr VersionRange kOurVersions{.least = 2, .most = 2};

// The newest version that both speak.
constexpr std::optional<std::uint16_t> common_version(VersionRange a, VersionRange b) noexcept {
  const std::uint16_t newest = std::min(a.most, b.most);
  if (newest < std::max(a.least, b.least)) return std::nullopt;
  return newest;
}

// "2", or "2-3".
std::string numbers(VersionRange range);
// "version 2", or "versions 2-3".
std::string text(VersionRange range);

// "the peer speaks version 1 of the protocol (Beeline 0.1), this host version 2 (Beeline 0.2.0
// (v0.2.0)): use the same build of Beeline on all hosts". No version of the protocol carries the
// name of the peer's build, so only releases that are older than this one can be named.
std::string version_mismatch(VersionRange theirs, VersionRange ours);

}  // namespace beeline::wire
