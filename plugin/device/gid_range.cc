// SPDX-License-Identifier: Apache-2.0
//
// Parses address ranges.
#include <arpa/inet.h>

#include <charconv>

#include "plugin/device/gid_choice.h"

namespace beeline {
namespace {

constexpr int kMappedBits = 96;  // of an IPv4 address within a GID

bool parse_ipv6(const std::string& text, Gid& gid) noexcept {
  return ::inet_pton(AF_INET6, text.c_str(), gid.data()) == 1;
}

bool parse_ipv4(const std::string& text, Gid& gid) noexcept {
  gid = {};
  gid[10] = gid[11] = 0xff;
  return ::inet_pton(AF_INET, text.c_str(), gid.data() + 12) == 1;
}

}  // namespace

Outcome<std::optional<GidRange>> parse_gid_range(std::string_view text) {
  if (text.empty()) return std::optional<GidRange>();
  const auto slash = text.find('/');
  GidRange range{.base = {}, .prefix = 128};
  const std::string address(text.substr(0, slash));
  const bool is_ipv6 = parse_ipv6(address, range.base);
  if (!is_ipv6 && !parse_ipv4(address, range.base)) {
    return fail("\"" + std::string(text) + "\" is not an address range like 10.0.0.0/8");
  }
  if (slash == std::string_view::npos) return std::optional(range);

  const std::string_view length = text.substr(slash + 1);
  const int skipped = is_ipv6 ? 0 : kMappedBits;
  int bits = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bits);
  if (error != std::errc() || end != length.data() + length.size() || bits < 0 ||
      bits > 128 - skipped) {
    return fail("\"" + std::string(text) + "\": the prefix length must be 0 to " +
                std::to_string(128 - skipped));
  }
  range.prefix = skipped + bits;
  return std::optional(range);
}

}  // namespace beeline
