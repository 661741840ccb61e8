// SPDX-License-Identifier: Apache-2.0
#include "tools/export/exposition.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace beeline::exporter {
namespace {

enum class Place : std::uint8_t { kHelp, kLabel };

std::string escaped(std::string_view text, Place place) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else {
      if (c == '\\' || (c == '"' && place == Place::kLabel)) result += '\\';
      result += c;
    }
  }
  return result;
}

std::string label_text(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, escaped(value, Place::kLabel));
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

Exposition::Exposition(std::string_view host) : host_(label_text("host", host)) {}

void Exposition::begin(const Family& family) {
  name_ = family.name;
  header_ = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, escaped(family.help, Place::kHelp),
                        name_, family.kind == Kind::kCounter ? "counter" : "gauge");
}

void Exposition::add(const std::vector<Label>& labels, std::uint64_t value) {
  add_text(labels, std::to_string(value));
}

void Exposition::add(const std::vector<Label>& labels, double value) {
  add_text(labels, number_text(value));
}

void Exposition::add_text(const std::vector<Label>& labels, const std::string& value) {
  text_ += std::exchange(header_, {});
  text_ += name_ + '{' + host_;
  for (const Label& label : labels) text_ += ',' + label_text(label.name, label.value);
  text_ += "} " + value + '\n';
}

}  // namespace beeline::exporter
