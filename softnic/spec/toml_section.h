// SPDX-License-Identifier: Apache-2.0
// Typed access to a table of a fabric file. Getters check types and ranges; unknown keys are
// reported with the most similar known key. Only the first error is kept and later ones are
// ignored, so the code that reads a file needs to check for an error only once, at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/problem.h"

namespace softnic {

// The first error in a file, as "FILE:LINE: reason".
class FirstError {
 public:
  explicit FirstError(std::string file_name) : file_name_(std::move(file_name)) {}
  void at(std::uint32_t line, const std::string& reason);
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string file_name_;
  std::string text_;
};

class Section {
 public:
  // A table whose name is a range is read once for each name of the range. This is the position of
  // the current name: it selects the element where a value is an array or a string with a range.
  struct Expansion {
    std::size_t index = 0;
    std::size_t count = 1;
  };

  // The root table of a file with this text. Fails if the text is not TOML; later errors go into
  // `error`.
  static beeline::Outcome<Section> parse(const std::string& text, const std::string& file_name,
                                         FirstError& error);

  std::uint32_t line() const;
  Expansion expansion() const { return expansion_; }
  bool has_key(const char* key) const;
  std::uint32_t line_of(const char* key) const;
  void add_error(const char* key, const std::string& reason) const;

  // Adds an error for the first key that is not in `known`.
  void reject_unknown_keys(const std::vector<std::string>& known) const;

  // The value of `key` for the current name; empty if it is absent or wrong.
  std::optional<std::string> text(const char* key) const;
  std::optional<std::int64_t> integer(const char* key, std::int64_t low, std::int64_t high) const;
  std::optional<double> number(const char* key, double low, double high) const;
  std::optional<bool> boolean(const char* key) const;
  // `what` names the kind of table in error messages: "[[host.device]]".
  std::optional<Section> table(const char* key, const std::string& what) const;
  std::vector<Section> tables(const char* key, const std::string& what) const;

  // The names that the mandatory key `name` expands to, and this table for one of them.
  std::vector<std::string> names(std::size_t most, std::size_t max_len) const;
  Section for_expansion(Expansion expansion) const {
    return Section(table_, what_, expansion, error_);
  }

 private:
  // Holds a table of toml++. Only toml_section.cc includes toml++, because it compiles slowly.
  struct Table;

  Section(std::shared_ptr<const Table> table, std::string what, Expansion expansion,
          FirstError& error);

  std::shared_ptr<const Table> table_;
  std::string what_;
  Expansion expansion_;
  FirstError& error_;
};

}  // namespace softnic
