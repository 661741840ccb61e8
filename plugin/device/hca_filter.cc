// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/hca_filter.h"

#include <charconv>
#include <optional>
#include <tuple>

namespace beeline {
namespace {

std::string_view trimmed(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// Removes the text before the first `separator` from `rest`, and returns it.
std::string_view take_field(std::string_view& rest, char separator) noexcept {
  const auto at = rest.find(separator);
  const std::string_view field = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return trimmed(field);
}

// -1 for an empty field; nothing for a field that is not a number.
std::optional<int> number_of(std::string_view field, int least, int most) noexcept {
  if (field.empty()) return -1;
  int value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return value >= least && value <= most ? std::optional(value) : std::nullopt;
}

std::optional<HcaRule> parse_rule(std::string_view text) {
  HcaRule rule{.name = std::string(take_field(text, ':'))};
  const auto port = number_of(take_field(text, ':'), 1, 255);
  const auto rail = number_of(take_field(text, ':'), 0, INT16_MAX);
  const auto plane = number_of(take_field(text, ':'), 0, INT16_MAX);
  if (rule.name.empty() || !port || !rail || !plane || !text.empty()) return std::nullopt;
  rule.port = *port;
  rule.rail = *rail;
  rule.plane = *plane;
  return rule;
}

bool matches(const HcaRule& rule, HcaFilter::Match how, std::string_view ibdev, int port) noexcept {
  if (rule.port >= 0 && rule.port != port) return false;
  return how == HcaFilter::Match::kExact ? ibdev == rule.name : ibdev.starts_with(rule.name);
}

}  // namespace

HcaFilter parse_hca_filter(std::string_view text) {
  HcaFilter filter;
  text = trimmed(text);
  if (text.starts_with('^')) {
    filter.mode = HcaFilter::Mode::kExclude;
    text.remove_prefix(1);
  }
  if (text.starts_with('=')) {
    filter.match = HcaFilter::Match::kExact;
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    const std::string_view part = take_field(text, ',');
    if (part.empty()) continue;
    if (auto rule = parse_rule(part)) {
      filter.rules.push_back(*std::move(rule));
    } else {
      filter.complaints.push_back("device filter: cannot read \"" + std::string(part) +
                                  "\" (name[:port[:rail[:plane]]]); it is ignored");
    }
  }
  return filter;
}

HcaVerdict judge(const HcaFilter& filter, std::string_view ibdev, int port) {
  if (filter.is_empty()) return {.admitted = true};
  const auto rank = [](const HcaRule& rule) {
    return std::tuple(rule.name.size(), rule.port >= 0);
  };
  const HcaRule* best = nullptr;
  for (const HcaRule& rule : filter.rules) {
    if (!matches(rule, filter.match, ibdev, port)) continue;
    if (best == nullptr || rank(rule) > rank(*best)) best = &rule;
  }
  if (filter.mode == HcaFilter::Mode::kExclude) return {.admitted = best == nullptr};
  if (best == nullptr) return {};
  return {.admitted = true, .rail = best->rail, .plane = best->plane};
}

}  // namespace beeline
