// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/gid.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>

namespace beeline {

const char* to_string(GidType type) noexcept {
  switch (type) {
    case GidType::kIb: return "IB";
    case GidType::kRoceV1: return "RoCE v1";
    case GidType::kRoceV2: return "RoCE v2";
  }
  return "unknown";
}

bool is_zero(const Gid& gid) noexcept {
  return std::all_of(gid.begin(), gid.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool is_ipv4_mapped(const Gid& gid) noexcept {
  const bool zeros =
      std::all_of(gid.begin(), gid.begin() + 10, [](auto byte) { return byte == 0; });
  return zeros && gid[10] == 0xff && gid[11] == 0xff;
}

bool is_link_local(const Gid& gid) noexcept {
  if (is_ipv4_mapped(gid)) return gid[12] == 169 && gid[13] == 254;
  return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

std::uint64_t subnet_prefix(const Gid& gid) noexcept {
  std::uint64_t prefix = 0;
  for (int i = 0; i < 8; ++i) prefix = prefix << 8 | gid[static_cast<std::size_t>(i)];
  return prefix;
}

std::uint16_t flid_of(const Gid& gid) noexcept {
  return static_cast<std::uint16_t>(gid[4] << 8 | gid[5]);
}

int common_prefix(const Gid& a, const Gid& b) noexcept {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto differing = static_cast<std::uint8_t>(a[i] ^ b[i]);
    if (differing != 0) return static_cast<int>(i) * 8 + std::countl_zero(differing);
  }
  return 128;
}

std::string to_string(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4_mapped(gid)) {
    ::inet_ntop(AF_INET, gid.data() + 12, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, gid.data(), text, sizeof text);
  }
  return text;
}

}  // namespace beeline
