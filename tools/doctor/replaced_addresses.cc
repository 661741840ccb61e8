// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/replaced_addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <regex>
#include <string_view>

namespace beeline::doctor {
namespace {

constexpr std::string_view kMapped = "0000:0000:0000:0000:0000:ffff:";

// Replaces each match of the pattern by what `replace` makes of it.
template <class Replace>
std::string replaced(const std::string& text, const std::regex& pattern, Replace&& replace) {
  std::string all;
  auto from = text.cbegin();
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    all.append(from, (*at)[0].first);
    all += replace(at->str());
    from = (*at)[0].second;
  }
  return all.append(from, text.cend());
}

std::string without_colons(std::string text) {
  std::erase(text, ':');
  return text;
}

// The name behind these folders is a user's.
std::string without_users(const std::string& text) {
  std::string all = text;
  for (const std::string_view folder : {"/home/", "/users/", "/Users/", "/u/"}) {
    for (std::size_t at = all.find(folder); at != std::string::npos; at = all.find(folder, at)) {
      at += folder.size();
      all.replace(at, std::min(all.find_first_of("/:\n", at), all.size()) - at, "user");
    }
  }
  return all;
}

// Four groups of a GID.
std::string groups(std::size_t number) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", number >> 48 & 0xffff, number >> 32 & 0xffff,
                     number >> 16 & 0xffff, number & 0xffff);
}

}  // namespace

std::size_t ReplacedAddresses::number(const char* kind, const std::string& text) {
  auto& known = numbers_[kind];
  return known.try_emplace(text, known.size() + 1).first->second;
}

std::string ReplacedAddresses::mac(const std::string& address) {
  const std::string bytes = without_colons(address);
  if (bytes == "000000000000" || bytes == "ffffffffffff") return address;
  const std::size_t n = number("mac", bytes);
  std::string other = fmt::format("02:00:00:00:{:02x}:{:02x}", n >> 8 & 0xff, n & 0xff);
  macs_[bytes] = without_colons(other);
  return other;
}

std::string ReplacedAddresses::ipv4(const std::string& address) {
  std::array<unsigned, 4> part{};
  if (std::sscanf(address.c_str(), "%u.%u.%u.%u", part.data(), part.data() + 1, part.data() + 2,
                  part.data() + 3) != 4 ||
      std::ranges::any_of(part, [](unsigned octet) { return octet > 255; })) {
    return address;
  }
  if (part[0] == 127 || part[0] == 0 || (part[0] == 169 && part[1] == 254)) return address;
  const std::string subnet = fmt::format("{}.{}.{}", part[0], part[1], part[2]);
  const std::size_t n = number("subnet", subnet);
  return fmt::format("10.{}.{}.{}", n >> 8 & 0xff, n & 0xff, part[3]);
}

std::string ReplacedAddresses::gid(const std::string& address) {
  // The GID of an iWARP port begins with the hardware address of its interface.
  const auto known = macs_.find(without_colons(address).substr(0, 12));
  if (known != macs_.end()) {
    const std::string& bytes = known->second;
    return bytes.substr(0, 4) + ":" + bytes.substr(4, 4) + ":" + bytes.substr(8, 4) +
           address.substr(14);
  }
  if (address.starts_with(kMapped)) {
    std::array<unsigned, 2> half{};
    std::sscanf(address.c_str() + kMapped.size(), "%x:%x", half.data(), half.data() + 1);
    const std::string other = ipv4(
        fmt::format("{}.{}.{}.{}", half[0] >> 8, half[0] & 0xff, half[1] >> 8, half[1] & 0xff));
    std::array<unsigned, 4> part{};
    std::sscanf(other.c_str(), "%u.%u.%u.%u", part.data(), part.data() + 1, part.data() + 2,
                part.data() + 3);
    return fmt::format("{}{:02x}{:02x}:{:02x}{:02x}", kMapped, part[0], part[1], part[2], part[3]);
  }
  const std::string prefix = address.substr(0, 19);
  const std::string end = groups(number("interface", address.substr(20)));
  if (prefix.starts_with("fe80") || prefix == "0000:0000:0000:0000") return prefix + ":" + end;
  return fmt::format("2001:0db8:0000:{:04x}:{}", number("prefix", prefix) & 0xffff, end);
}

std::string ReplacedAddresses::in_text(const std::string& text) {
  static const std::regex kGid("\\b([0-9a-f]{4}:){7}[0-9a-f]{4}\\b");
  static const std::regex kMac("\\b([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\\b");
  static const std::regex kIpv4("\\b([0-9]{1,3}\\.){3}[0-9]{1,3}\\b");
  // With "::", which the kernel never writes.
  static const std::regex kShortIpv6("\\b([0-9a-fA-F]{1,4}:){1,6}(:[0-9a-fA-F]{1,4}){1,6}\\b");
  std::string all = replaced(text, kGid, [this](const std::string& found) { return gid(found); });
  all = replaced(all, kMac, [this](const std::string& found) { return mac(found); });
  all = replaced(all, kIpv4, [this](const std::string& found) { return ipv4(found); });
  all = replaced(all, kShortIpv6, [this](const std::string& found) {
    return fmt::format("2001:db8::{:x}", number("ipv6", found));
  });
  return without_users(all);
}

std::string ReplacedAddresses::in_routes(const std::string& text) {
  static const std::regex kAddress("\\t[0-9A-F]{8}\\t[0-9A-F]{8}\\t");
  return replaced(text, kAddress, [this](const std::string& found) {
    const auto other = [this](const std::string& address) {
      // Bytes are in reverse order: 169.254.x.x is link-local, and stays so.
      if (address == "00000000" || address.ends_with("FEA9")) return address;
      return fmt::format("{:04X}000A", number("route", address) & 0xffff);
    };
    return "\t" + other(found.substr(1, 8)) + "\t" + other(found.substr(10, 8)) + "\t";
  });
}

}  // namespace beeline::doctor
