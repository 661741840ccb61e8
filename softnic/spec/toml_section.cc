// SPDX-License-Identifier: Apache-2.0
// The only unit that compiles toml++.
#include "softnic/spec/toml_section.h"

#include <fmt/format.h>

// Debian's pkg-config flags select the shared library, which is built with exceptions.
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

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

void wrong_type(FirstError& error, const char* key, const toml::node& found, const char* wanted) {
  error.at(found.source().begin.line,
           fmt::format("{}: expected {}, found {}", key, wanted, type_name(found)));
}

// The node for the current name: of an array, its element at that position.
const toml::node* find_node(const Section& section, const toml::table& table, const char* key) {
  const toml::node* const found = table.get(key);
  if (found == nullptr || !found->is_array()) return found;
  const toml::array& array = *found->as_array();
  const Section::Expansion expansion = section.expansion();
  if (array.size() != expansion.count) {
    section.add_error(key,
                      fmt::format("{} values for {} name{}: an array needs one value for each name",
                                  array.size(), expansion.count, expansion.count == 1 ? "" : "s"));
    return nullptr;
  }
  return array.get(expansion.index);
}

}  // namespace

struct Section::Table {
  std::shared_ptr<const toml::table> file;  // owns `toml`, which is part of it
  const toml::table& toml;
};

void FirstError::at(std::uint32_t line, const std::string& reason) {
  if (text_.empty())
    text_ = line == 0 ? fmt::format("{}: {}", file_name_, reason)
                      : fmt::format("{}:{}: {}", file_name_, line, reason);
}

Section::Section(std::shared_ptr<const Table> table, std::string what, Expansion expansion,
                 FirstError& error)
    : table_(std::move(table)), what_(std::move(what)), expansion_(expansion), error_(error) {}

beeline::Outcome<Section> Section::parse(const std::string& text, const std::string& file_name,
                                         FirstError& error) {
  toml::parse_result parsed = toml::parse(text, file_name);
  if (!parsed)
    return beeline::fail(fmt::format("{}:{}: {}", file_name, parsed.error().source().begin.line,
                                     parsed.error().description()));
  const auto file = std::make_shared<const toml::table>(std::move(parsed).table());
  return Section(std::make_shared<const Table>(Table{file, *file}), "the file", {}, error);
}

std::uint32_t Section::line() const { return table_->toml.source().begin.line; }

bool Section::has_key(const char* key) const { return table_->toml.contains(key); }

std::uint32_t Section::line_of(const char* key) const {
  const toml::node* const found = table_->toml.get(key);
  return found == nullptr ? line() : found->source().begin.line;
}

void Section::add_error(const char* key, const std::string& reason) const {
  error_.at(line_of(key), fmt::format("{}: {}", key, reason));
}

void Section::reject_unknown_keys(const std::vector<std::string>& known) const {
  const toml::key* first = nullptr;  // the first by line; iteration is in the order of names
  for (const auto& [key, value] : table_->toml) {
    if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
    if (first == nullptr || key.source().begin.line < first->source().begin.line) first = &key;
  }
  if (first == nullptr) return;
  const std::string key(first->str());
  const std::string meant = nearest_name(key, known);
  error_.at(first->source().begin.line,
            fmt::format("unknown key \"{}\" in {}; {}", key, what_,
                        meant.empty() ? "the known keys are " + list_text(known)
                                      : fmt::format("did you mean \"{}\"?", meant)));
}

std::optional<std::string> Section::text(const char* key) const {
  const toml::node* const found = find_node(*this, table_->toml, key);
  if (found == nullptr) return std::nullopt;
  const auto* const value = found->as_string();
  if (value == nullptr) {
    wrong_type(error_, key, *found, "a string");
    return std::nullopt;
  }
  if (table_->toml.get(key)->is_array()) return value->get();
  const auto names = expand_range(value->get(), std::max<std::size_t>(expansion_.count, 1));
  if (!names || (names->size() != 1 && names->size() != expansion_.count)) {
    add_error(key, names ? fmt::format("\"{}\" is {} values for {} names", value->get(),
                                       names->size(), expansion_.count)
                         : names.error().text);
    return std::nullopt;
  }
  return names->size() == 1 ? names->front() : (*names)[expansion_.index];
}

std::optional<std::int64_t> Section::integer(const char* key, std::int64_t low,
                                             std::int64_t high) const {
  const toml::node* const found = find_node(*this, table_->toml, key);
  if (found == nullptr) return std::nullopt;
  const auto* const value = found->as_integer();
  if (value == nullptr) {
    wrong_type(error_, key, *found, "an integer");
    return std::nullopt;
  }
  if (value->get() < low || value->get() > high) {
    add_error(key, fmt::format("{} is out of range: {} to {}", value->get(), low, high));
    return std::nullopt;
  }
  return value->get();
}

std::optional<double> Section::number(const char* key, double low, double high) const {
  const toml::node* const found = find_node(*this, table_->toml, key);
  if (found == nullptr) return std::nullopt;
  const std::optional<double> value = found->is_number() ? found->value<double>() : std::nullopt;
  if (!value) {
    wrong_type(error_, key, *found, "a number");
    return std::nullopt;
  }
  if (!(*value >= low && *value <= high)) {  // also catches nan
    add_error(key, fmt::format("{} is out of range: {} to {}", *value, low, high));
    return std::nullopt;
  }
  return value;
}

std::optional<bool> Section::boolean(const char* key) const {
  const toml::node* const found = find_node(*this, table_->toml, key);
  if (found == nullptr) return std::nullopt;
  const auto* const value = found->as_boolean();
  if (value == nullptr) {
    wrong_type(error_, key, *found, "true or false");
    return std::nullopt;
  }
  return value->get();
}

std::optional<Section> Section::table(const char* key, const std::string& what) const {
  const toml::node* const found = table_->toml.get(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_table()) {
    wrong_type(error_, key, *found, "a table");
    return std::nullopt;
  }
  auto table = std::make_shared<const Table>(Table{table_->file, *found->as_table()});
  return Section(std::move(table), what, expansion_, error_);
}

std::vector<Section> Section::tables(const char* key, const std::string& what) const {
  const toml::node* const found = table_->toml.get(key);
  if (found == nullptr) return {};
  if (!found->is_array()) {
    wrong_type(error_, key, *found, "an array of tables");
    return {};
  }
  std::vector<Section> sections;
  for (const toml::node& element : *found->as_array()) {
    if (!element.is_table()) {
      wrong_type(error_, key, element, "a table");
      return {};
    }
    auto table = std::make_shared<const Table>(Table{table_->file, *element.as_table()});
    sections.push_back(Section(std::move(table), what, expansion_, error_));
  }
  return sections;
}

std::vector<std::string> Section::names(std::size_t most, std::size_t max_len) const {
  const toml::node* const found = table_->toml.get("name");
  if (found == nullptr) {
    error_.at(line(), fmt::format("{} has no name", what_));
    return {};
  }
  if (!found->is_string()) {
    wrong_type(error_, "name", *found, "a string");
    return {};
  }
  const auto expanded = expand_range(found->as_string()->get(), most);
  if (!expanded) {
    add_error("name", expanded.error().text);
    return {};
  }
  for (const std::string& name : *expanded) {
    if (is_plain_name(name, max_len)) continue;
    add_error("name", fmt::format("\"{}\" is not a name: up to {} letters, digits, '-', '_', '.'",
                                  name, max_len));
    return {};
  }
  return *expanded;
}

}  // namespace softnic
