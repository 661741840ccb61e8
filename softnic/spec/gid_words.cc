// SPDX-License-Identifier: Apache-2.0
#include "softnic/spec/gid_words.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <string>

namespace softnic {

beeline::Outcome<std::array<std::uint8_t, 16>> parse_gid(const std::string& text) {
  std::array<std::uint8_t, 16> raw{};
  if (inet_pton(AF_INET6, text.c_str(), raw.data()) != 1)
    return beeline::fail(fmt::format(
        "\"{}\" is not a GID: write it like an IPv6 address, fe80::1 or ::ffff:10.0.0.1", text));
  return raw;
}

const char* gid_kind_name(GidKind kind) {
  switch (kind) {
    case GidKind::kIb: return "ib";
    case GidKind::kRoceV1: return "roce_v1";
    case GidKind::kRoceV2: return "roce_v2";
  }
  return "?";
}

beeline::Outcome<GidKind> parse_gid_kind(const std::string& text) {
  for (const GidKind kind : {GidKind::kIb, GidKind::kRoceV1, GidKind::kRoceV2}) {
    std::string name = gid_kind_name(kind);
    if (text == name) return kind;
    std::erase(name, '_');
    if (text == name) return kind;
  }
  return beeline::fail(
      fmt::format("\"{}\" is not a GID type; the types are ib, roce_v1 and roce_v2", text));
}

}  // namespace softnic
