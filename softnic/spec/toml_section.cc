// SPDX-License-Identifier: Apache-2.0
// Typed reading of TOML tables. toml++ is compiled here, without what we do not use of it.
#include "softnic/spec/toml_section.h"

#include <fmt/format.h>

// Debian's pkg-config flags ask for the shared library, which is built with exceptions.
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

void wrong_type(Complaint& complaint, const char* key, const toml::node& found,
                const char* wanted) {
  complaint.at(found.source().begin.line,
               fmt::format("{}: expected {}, found {}", key, wanted, type_name(found)));
}

// The node for this turn: an array gives its turn-th element.
const toml::node* find_node(const Section& section, const toml::table& table, const char* key) {
  const toml::node* const found = table.get(key);
  if (found == nullptr || !found->is_array()) return found;
  const toml::array& array = *found->as_array();
  const Section::Turn turn = section.turn();
  if (array.size() != turn.count) {
    section.complain(key, fmt::format("{} values for {} name{}: an array gives one to each",
                                      array.size(), turn.count, turn.count == 1 ? "" : "s"));
    return nullptr;
  }
  return array.get(turn.index);
}

}  // namespace

struct Section::Table {
  std::shared_ptr<const toml::table> file;  // keeps `toml` alive, which is somewhere in it
  const toml::table& toml;
};

void Complaint::at(std::uint32_t line, const std::string& reason) {
  if (text_.empty())
    text_ = line == 0 ? fmt::format("{}: {}", file_name_, reason)
                      : fmt::format("{}:{}: {}", file_name_, line, reason);
}

Section::Section(std::shared_ptr<const Table> table, std::string what, Turn turn,
                 Complaint& complaint)
    : table_(std::move(table)), what_(std::move(what)), turn_(turn), complaint_(complaint) {}

beeline::Outcome<Section> Section::parse(const std::string& text, const std::string& file_name,
                                         Complaint& complaint) {
  toml::parse_result parsed = toml::parse(text, file_name);
  if (!parsed)
    return beeline::fail(fmt::format("{}:{}: {}", file_name, parsed.error().source().begin.line,
                                     parsed.error().description()));
  const auto file = std::make_shared<const toml::table>(std::move(parsed).table());
  return Section(std::make_shared<const Table>(Table{file, *file}), "the file", {}, complaint);
}

std::uint32_t Section::line() const { return table_->toml.source().begin.line; }

bool Section::has(const char* key) const { return table_->toml.contains(key); }

std::uint32_t Section::line_of(const char* key) const {
  const toml::node* const found = table_->toml.get(key);
  return found == nullptr ? line() : found->source().begin.line;
}

void Section::complain(const char* key, const std::string& reason) const {
  complaint_.at(line_of(key), fmt::format("{}: {}", key, reason));
}

void Section::only(const std::vector<std::string>& known) const {
  const toml::key* first = nullptr;  // by line: the table itself is sorted by name
  for (const auto& [key, value] : table_->toml) {
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

std::optional<std::string> Section::text(const char* key) const {
  const toml::node* const found = find_node(*this, table_->toml, key);
  if (found == nullptr) return std::nullopt;
  const auto* const value = found->as_string();
  if (value == nullptr) {
    wrong_type(complaint_, key, *found, "a string");
    return std::nullopt;
  }
  if (table_->toml.get(key)->is_array()) return value->get();
  const auto names = expand_range(value->get(), std::max<std::size_t>(turn_.count, 1));
  if (!names || (names->size() != 1 && names->size() != turn_.count)) {
    complain(key, names ? fmt::format("\"{}\" is {} values for {} names", value->get(),
                                      names->size(), turn_.count)
                        : names.error().text);
    return std::nullopt;
  }
  return names->size() == 1 ? names->front() : (*names)[turn_.index];
}

std::optional<std::int64_t> Section::integer(const char* key, std::int64_t low,
                                             std::int64_t high) const {
  const toml::node* const found = find_node(*this, table_->toml, key);
  if (found == nullptr) return std::nullopt;
  const auto* const value = found->as_integer();
  if (value == nullptr) {
    wrong_type(complaint_, key, *found, "an integer");
    return std::nullopt;
  }
  if (value->get() < low || value->get() > high) {
    complain(key, fmt::format("{} is out of range: {} to {}", value->get(), low, high));
    return std::nullopt;
  }
  return value->get();
}

std::optional<double> Section::number(const char* key, double low, double high) const {
  const toml::node* const found = find_node(*this, table_->toml, key);
  if (found == nullptr) return std::nullopt;
  const std::optional<double> value = found->is_number() ? found->value<double>() : std::nullopt;
  if (!value) {
    wrong_type(complaint_, key, *found, "a number");
    return std::nullopt;
  }
  if (!(*value >= low && *value <= high)) {  // also catches nan
    complain(key, fmt::format("{} is out of range: {} to {}", *value, low, high));
    return std::nullopt;
  }
  return value;
}

std::optional<bool> Section::boolean(const char* key) const {
  const toml::node* const found = find_node(*this, table_->toml, key);
  if (found == nullptr) return std::nullopt;
  const auto* const value = found->as_boolean();
  if (value == nullptr) {
    wrong_type(complaint_, key, *found, "true or false");
    return std::nullopt;
  }
  return value->get();
}

std::optional<Section> Section::table(const char* key, const std::string& what) const {
  const toml::node* const found = table_->toml.get(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_table()) {
    wrong_type(complaint_, key, *found, "a table");
    return std::nullopt;
  }
  auto table = std::make_shared<const Table>(Table{table_->file, *found->as_table()});
  return Section(std::move(table), what, turn_, complaint_);
}

std::vector<Section> Section::tables(const char* key, const std::string& what) const {
  const toml::node* const found = table_->toml.get(key);
  if (found == nullptr) return {};
  if (!found->is_array()) {
    wrong_type(complaint_, key, *found, "an array of tables");
    return {};
  }
  std::vector<Section> sections;
  for (const toml::node& element : *found->as_array()) {
    if (!element.is_table()) {
      wrong_type(complaint_, key, element, "a table");
      return {};
    }
    auto table = std::make_shared<const Table>(Table{table_->file, *element.as_table()});
    sections.push_back(Section(std::move(table), what, turn_, complaint_));
  }
  return sections;
}

std::vector<std::string> Section::names(std::size_t most, std::size_t max_len) const {
  const toml::node* const found = table_->toml.get("name");
  if (found == nullptr) {
    complaint_.at(line(), fmt::format("{} has no name", what_));
    return {};
  }
  if (!found->is_string()) {
    wrong_type(complaint_, "name", *found, "a string");
    return {};
  }
  const auto expanded = expand_range(found->as_string()->get(), most);
  if (!expanded) {
    complain("name", expanded.error().text);
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
