// SPDX-License-Identifier: Apache-2.0
// Typed reading of TOML tables. This file compiles toml++ itself (its implementation is in the
// header), so that no other file pays for it.
#define TOML_IMPLEMENTATION
#include "softnic/spec/toml_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "softnic/spec/names.h"

namespace softnic {
namespace {

const char* type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::none: return "nothing";
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "an array";
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a decimal number";
    case toml::node_type::boolean: return "true or false";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time: return "a date or time";
  }
  return "something else";
}

}  // namespace

void Complaint::at(uint32_t line, const std::string& reason) {
  if (text_.empty())
    text_ = line == 0 ? fmt::format("{}: {}", file_name_, reason)
                      : fmt::format("{}:{}: {}", file_name_, line, reason);
}

Section::Section(const toml::table& table, std::string what, Turn turn, Complaint& complaint)
    : table_(table), what_(std::move(what)), turn_(turn), complaint_(complaint) {}

uint32_t Section::line() const { return table_.source().begin.line; }

uint32_t Section::line_of(const char* key) const {
  const toml::node* const found = table_.get(key);
  return found == nullptr ? line() : found->source().begin.line;
}

void Section::complain(const char* key, const std::string& reason) const {
  complaint_.at(line_of(key), fmt::format("{}: {}", key, reason));
}

void Section::wrong_type(const char* key, const toml::node& found, const char* wanted) const {
  complaint_.at(found.source().begin.line,
                fmt::format("{}: expected {}, found {}", key, wanted, type_name(found)));
}

void Section::only(const std::vector<std::string>& known) const {
  const toml::key* first = nullptr;  // by line: the table itself is sorted by name
  for (const auto& [key, value] : table_) {
    if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
    if (first == nullptr || key.source().begin.line < first->source().begin.line) first = &key;
  }
  if (first == nullptr) return;
  const std::string key(first->str());
  const std::string meant = nearest(key, known);
  complaint_.at(first->source().begin.line,
                fmt::format("unknown key \"{}\" in {}; {}", key, what_,
                            meant.empty() ? "known here: " + listing(known)
                                          : fmt::format("did you mean \"{}\"?", meant)));
}

// The node for this turn: an array gives its turn-th element.
const toml::node* Section::node(const char* key) const {
  const toml::node* const found = table_.get(key);
  if (found == nullptr || !found->is_array()) return found;
  const toml::array& array = *found->as_array();
  if (array.size() != turn_.count) {
    complain(key, fmt::format("{} values for {} name{}: an array gives one to each", array.size(),
                              turn_.count, turn_.count == 1 ? "" : "s"));
    return nullptr;
  }
  return array.get(turn_.index);
}

std::optional<std::string> Section::text(const char* key) const {
  const toml::node* const found = node(key);
  if (found == nullptr) return std::nullopt;
  const auto* const value = found->as_string();
  if (value == nullptr) {
    wrong_type(key, *found, "a string");
    return std::nullopt;
  }
  if (table_.get(key)->is_array()) return value->get();
  const auto names = expand_range(value->get(), std::max<size_t>(turn_.count, 1));
  if (!names || (names->size() != 1 && names->size() != turn_.count)) {
    complain(key, names ? fmt::format("\"{}\" is {} values for {} names", value->get(),
                                      names->size(), turn_.count)
                        : names.error());
    return std::nullopt;
  }
  return names->size() == 1 ? names->front() : (*names)[turn_.index];
}

std::optional<int64_t> Section::integer(const char* key, int64_t low, int64_t high) const {
  const toml::node* const found = node(key);
  if (found == nullptr) return std::nullopt;
  const auto* const value = found->as_integer();
  if (value == nullptr) {
    wrong_type(key, *found, "an integer");
    return std::nullopt;
  }
  if (value->get() < low || value->get() > high) {
    complain(key, fmt::format("{} is out of range: {} to {}", value->get(), low, high));
    return std::nullopt;
  }
  return value->get();
}

std::optional<double> Section::number(const char* key, double low, double high) const {
  const toml::node* const found = node(key);
  if (found == nullptr) return std::nullopt;
  const std::optional<double> value = found->is_number() ? found->value<double>() : std::nullopt;
  if (!value) {
    wrong_type(key, *found, "a number");
    return std::nullopt;
  }
  if (!(*value >= low && *value <= high)) {  // also catches nan
    complain(key, fmt::format("{} is out of range: {} to {}", *value, low, high));
    return std::nullopt;
  }
  return value;
}

std::optional<bool> Section::boolean(const char* key) const {
  const toml::node* const found = node(key);
  if (found == nullptr) return std::nullopt;
  const auto* const value = found->as_boolean();
  if (value == nullptr) {
    wrong_type(key, *found, "true or false");
    return std::nullopt;
  }
  return value->get();
}

std::optional<Section> Section::table(const char* key, const std::string& what) const {
  const toml::node* const found = table_.get(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_table()) {
    wrong_type(key, *found, "a table");
    return std::nullopt;
  }
  return Section(*found->as_table(), what, turn_, complaint_);
}

std::vector<Section> Section::tables(const char* key, const std::string& what) const {
  const toml::node* const found = table_.get(key);
  if (found == nullptr) return {};
  if (!found->is_array()) {
    wrong_type(key, *found, "an array of tables");
    return {};
  }
  std::vector<Section> sections;
  for (const toml::node& element : *found->as_array()) {
    if (!element.is_table()) {
      wrong_type(key, element, "a table");
      return {};
    }
    sections.emplace_back(*element.as_table(), what, turn_, complaint_);
  }
  return sections;
}

std::vector<std::string> Section::names(size_t most, size_t max_len) const {
  const toml::node* const found = table_.get("name");
  if (found == nullptr) {
    complaint_.at(line(), fmt::format("{} has no name", what_));
    return {};
  }
  if (!found->is_string()) {
    wrong_type("name", *found, "a string");
    return {};
  }
  const auto expanded = expand_range(found->as_string()->get(), most);
  if (!expanded) {
    complain("name", expanded.error());
    return {};
  }
  for (const std::string& name : *expanded) {
    if (is_plain_name(name, max_len)) continue;
    complain("name", fmt::format("\"{}\" is not a name: up to {} letters, digits, '-', '_', '.'",
                                 name, max_len));
    return {};
  }
  return *expanded;
}

}  // namespace softnic
