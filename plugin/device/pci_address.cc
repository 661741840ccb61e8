// SPDX-License-Identifier: Apache-2.0
//
// Parsing PCI addresses.
#include "plugin/device/pci_address.h"

#include <charconv>

namespace beeline {
namespace {

// Takes a hexadecimal number and the separator behind it; '\0' stands for the end.
bool take_hex(std::string_view& text, char separator, std::uint32_t& value) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (separator == '\0') return text.empty();
  if (!text.starts_with(separator)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  PciAddress address;
  const bool good = take_hex(text, ':', address.domain) && take_hex(text, ':', address.bus) &&
                    take_hex(text, '.', address.device) && take_hex(text, '\0', address.function);
  return good ? std::optional(address) : std::nullopt;
}

std::string_view base_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0: no slash, all of it
}

std::string pci_function_of(std::string path) {
  while (!path.empty() && !parse_pci_address(base_name(path))) {
    const auto slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
  return path;
}

}  // namespace beeline
