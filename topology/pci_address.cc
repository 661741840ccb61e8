// SPDX-License-Identifier: Apache-2.0
#include "topology/pci_address.h"

#include <array>
#include <charconv>
#include <cstdio>

namespace beeline::topology {
namespace {

// All of the text as a hexadecimal number, if it has that many digits and is not above `limit`.
template <class Number>
bool read_hex(std::string_view text, std::size_t min_digits, std::size_t max_digits,
              std::uint32_t limit, Number& number) noexcept {
  if (text.size() < min_digits || text.size() > max_digits) return false;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || value > limit) return false;
  number = static_cast<Number>(value);
  return true;
}

}  // namespace

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  PciAddress address;
  const auto dot = text.rfind('.');
  const auto colon = text.rfind(':');
  if (dot == std::string_view::npos || colon == std::string_view::npos || dot < colon) return {};
  std::string_view bus = text.substr(0, colon);
  if (const auto domain_end = bus.find(':'); domain_end != std::string_view::npos) {
    if (!read_hex(bus.substr(0, domain_end), 4, 8, 0xffffffff, address.domain)) return {};
    bus.remove_prefix(domain_end + 1);
  }
  const bool good = read_hex(bus, 2, 2, 0xff, address.bus) &&
                    read_hex(text.substr(colon + 1, dot - colon - 1), 2, 2, 0x1f, address.device) &&
                    read_hex(text.substr(dot + 1), 1, 1, 7, address.function);
  return good ? std::optional(address) : std::nullopt;
}

std::string to_string(const PciAddress& address) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", address.domain, address.bus,
                address.device, address.function);
  return text.data();
}

}  // namespace beeline::topology
