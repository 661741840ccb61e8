// SPDX-License-Identifier: Apache-2.0
#include "topology/read/sysfs_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

#include "topology/pcie_link.h"

namespace beeline::topology {
namespace {

constexpr std::size_t kMaxCpus = std::size_t{1} << 16;
// The maximum length of a list. Without it, a list that repeats the same processors could take
// hours.
constexpr std::size_t kMaxListBytes = std::size_t{1} << 14;
constexpr double kMaxGigaTransfers = 1'000;
constexpr double kMaxGigabits = 1'000'000;

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string_view without_0x(std::string_view text) noexcept {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return text;
}

template <class Number>
std::optional<Number> parse_all(std::string_view text, int base) noexcept {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// A positive number followed by a unit.
std::optional<double> parse_giga(std::string_view text, std::string_view unit) noexcept {
  text = trimmed(text);
  double giga = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), giga, std::chars_format::fixed);
  if (error != std::errc() || !(giga > 0)) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return trimmed(text).starts_with(unit) ? std::optional(giga) : std::nullopt;
}

// "3" and "0-31"; both ends are within it.
struct Span {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};
std::optional<Span> parse_span(std::string_view text) noexcept {
  const auto dash = text.find('-');
  const auto first = parse_all<std::uint32_t>(text.substr(0, dash), 10);
  const auto last =
      dash == std::string_view::npos ? first : parse_all<std::uint32_t>(text.substr(dash + 1), 10);
  if (!first || !last || *first > *last || *last >= kMaxCpus) return {};
  return Span{*first, *last};
}

// Splits at commas; returns false as soon as `take` does.
template <class Take>
bool each_part(std::string_view text, const Take& take) {
  for (;;) {
    const auto comma = text.find(',');
    if (!take(text.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

void add_span(std::string& list, std::size_t first, std::size_t last) {
  if (!list.empty()) list += ',';
  list += std::to_string(first);
  if (last != first) list += '-' + std::to_string(last);
}

}  // namespace

std::optional<std::uint32_t> parse_hex(std::string_view text) noexcept {
  return parse_all<std::uint32_t>(without_0x(trimmed(text)), 16);
}

std::optional<int> parse_int(std::string_view text) noexcept {
  return parse_all<int>(trimmed(text), 10);
}

std::optional<std::uint32_t> parse_pci_class(std::string_view text) noexcept {
  const std::string_view digits = without_0x(trimmed(text));
  const auto number = parse_all<std::uint32_t>(digits, 16);
  if (!number || digits.size() > 6) return {};
  return *number << (digits.size() <= 2 ? 16 : digits.size() <= 4 ? 8 : 0);
}

std::optional<std::uint32_t> parse_link_rate(std::string_view text) noexcept {
  const auto giga = parse_giga(text, "GT/s");
  if (!giga || *giga > kMaxGigaTransfers) return {};
  return static_cast<std::uint32_t>(std::lround(*giga * 1'000));
}

std::optional<std::uint32_t> parse_port_rate(std::string_view text) noexcept {
  const auto giga = parse_giga(text, "Gb/s");
  if (!giga || *giga > kMaxGigabits) return {};
  return static_cast<std::uint32_t>(std::lround(*giga * 1'000));
}

std::string link_rate_text(std::uint32_t mega_transfers) {
  if (mega_transfers == 0) return {};
  std::array<char, 32> text{};
  // Only integers are formatted, because NCCL could not parse a locale's decimal comma.
  const std::uint32_t thousandths = mega_transfers % 1'000;
  if (thousandths % 100 == 0) {
    std::snprintf(text.data(), text.size(), "%u.%u", mega_transfers / 1'000, thousandths / 100);
  } else {
    std::snprintf(text.data(), text.size(), "%u.%03u", mega_transfers / 1'000, thousandths);
  }
  return std::string(text.data()) + " GT/s PCIe";
}

std::optional<std::uint32_t> parse_link_width(std::string_view text) noexcept {
  text = trimmed(text);
  if (text.starts_with('x')) text.remove_prefix(1);
  const auto lanes = parse_all<std::uint32_t>(text, 10);
  if (!lanes || *lanes == 0 || *lanes > kMaxPcieLanes) return {};
  return lanes;
}

std::optional<std::string> list_of_mask(std::string_view mask) {
  std::vector<std::uint32_t> groups;  // the highest first
  const bool is_mask = each_part(without_0x(trimmed(mask)), [&groups](std::string_view group) {
    // A group may be longer than 32 bits, because other programs write masks without commas.
    while (group.size() > 8) {
      const std::size_t head = group.size() % 8 == 0 ? 8 : group.size() % 8;
      const auto bits = parse_all<std::uint32_t>(group.substr(0, head), 16);
      if (!bits || groups.size() * 32 >= kMaxCpus) return false;
      groups.push_back(*bits);
      group.remove_prefix(head);
    }
    const auto bits = parse_all<std::uint32_t>(group, 16);
    if (!bits || groups.size() * 32 >= kMaxCpus) return false;
    groups.push_back(*bits);
    return true;
  });
  if (!is_mask) return {};
  const auto is_set = [&groups](std::size_t cpu) {
    return cpu < groups.size() * 32 && (groups[groups.size() - 1 - cpu / 32] >> cpu % 32 & 1) != 0;
  };
  std::string list;
  for (std::size_t cpu = 0; cpu < groups.size() * 32; ++cpu) {
    if (!is_set(cpu)) continue;
    const std::size_t first = cpu;
    while (is_set(cpu + 1)) ++cpu;
    add_span(list, first, cpu);
  }
  return list;
}

bool is_cpu_list(std::string_view text) noexcept {
  text = trimmed(text);
  return text.size() <= kMaxListBytes &&
         each_part(text, [](std::string_view part) { return parse_span(part).has_value(); });
}

std::optional<std::pair<int, int>> ends_of_list(std::string_view list) noexcept {
  list = trimmed(list);
  if (!is_cpu_list(list)) return {};
  const auto first = parse_span(list.substr(0, list.find(',')));
  const auto last = parse_span(list.substr(list.rfind(',') + 1));  // npos + 1 is 0
  if (!first || !last) return {};
  return std::pair(static_cast<int>(first->first), static_cast<int>(last->last));
}

std::string mask_of_list(std::string_view list) {
  if (!is_cpu_list(list)) return {};
  std::vector<std::uint32_t> groups;  // the lowest first
  each_part(trimmed(list), [&groups](std::string_view part) {
    const auto span = parse_span(part);
    if (groups.size() <= span->last / 32) groups.resize(span->last / 32 + 1);
    for (std::uint32_t cpu = span->first; cpu <= span->last; ++cpu) {
      groups[cpu / 32] |= std::uint32_t{1} << cpu % 32;
    }
    return true;
  });
  std::string mask;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%s%08x", mask.empty() ? "" : ",", *group);
    mask += text.data();
  }
  return mask;
}

}  // namespace beeline::topology
