// SPDX-License-Identifier: Apache-2.0
#include "softnic/spec/pci_path.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace softnic {
namespace {

std::optional<std::uint32_t> parse_hex(std::string_view digits) {
  std::uint32_t value = 0;
  for (const char c : digits)
    if (c >= 'A' && c <= 'F') return std::nullopt;  // sysfs names are lower case
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

// Parses "0000:40", the domain and bus of a root or an address.
std::optional<PciAddress> parse_bus(std::string_view text) {
  if (text.size() != 7 || text[4] != ':') return std::nullopt;
  const std::optional<std::uint32_t> domain = parse_hex(text.substr(0, 4));
  const std::optional<std::uint32_t> bus = parse_hex(text.substr(5, 2));
  if (!domain || !bus) return std::nullopt;
  return PciAddress{*domain, static_cast<std::uint8_t>(*bus), 0, 0};
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t slash; (slash = text.find('/', start)) != std::string::npos; start = slash + 1)
    parts.push_back(text.substr(start, slash - start));
  parts.push_back(text.substr(start));
  return parts;
}

bool is_root(const std::string& part) {
  return part.starts_with("pci") && parse_bus(std::string_view(part).substr(3)).has_value();
}

}  // namespace

std::optional<PciAddress> parse_pci_address(const std::string& text) {
  const std::string_view view = text;
  if (view.size() != 12 || view[7] != ':' || view[10] != '.') return std::nullopt;
  std::optional<PciAddress> address = parse_bus(view.substr(0, 7));
  const std::optional<std::uint32_t> slot = parse_hex(view.substr(8, 2));
  const std::optional<std::uint32_t> function = parse_hex(view.substr(11, 1));
  if (!address || !slot || *slot > 0x1f || !function || *function > 7) return std::nullopt;
  address->slot = static_cast<std::uint8_t>(*slot);
  address->function = static_cast<std::uint8_t>(*function);
  return address;
}

std::string PciPath::path_to(std::size_t count) const {
  std::string path = root;
  for (std::size_t i = 0; i < count; ++i) path.append("/").append(steps[i]);
  return path;
}

beeline::Outcome<PciPath> parse_pci_path(const std::string& text) {
  constexpr const char* kShape = "write for example pci0000:40/0000:40:01.1/0000:41:00.0";
  PciPath path;
  path.steps = split(text);
  path.root = path.steps.front();
  path.steps.erase(path.steps.begin());
  if (!is_root(path.root))
    return beeline::fail(fmt::format(
        "PCI path \"{}\" does not begin with a root like pci0000:40; {}", text, kShape));
  if (path.steps.empty())
    return beeline::fail(fmt::format("PCI path \"{}\" names no function; {}", text, kShape));
  for (const std::string& step : path.steps)
    if (!parse_pci_address(step))
      return beeline::fail(
          fmt::format("PCI path \"{}\": \"{}\" is not an address like 0000:41:00.0", text, step));
  if (path.steps.front().compare(0, 7, path.root, 3, 7) != 0)
    return beeline::fail(fmt::format("PCI path \"{}\": {} is not on the bus of its root {}", text,
                                     path.steps.front(), path.root));
  return path;
}

}  // namespace softnic
