// SPDX-License-Identifier: Apache-2.0
// A table of a fabric file while it is read. Getters check type and range, and unknown keys are
// told with the nearest known one. The first complaint wins and everything after it is void, so
// that reading code is a plain list of keys and asks once, at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/problem.h"

namespace softnic {

// The first thing wrong with a file, as "FILE:LINE: reason".
class Complaint {
 public:
  explicit Complaint(std::string file_name) : file_name_(std::move(file_name)) {}
  void at(std::uint32_t line, const std::string& reason);
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string file_name_;
  std::string text_;
};

class Section {
 public:
  // Which of several alike this reading is for: a table whose name is a range is read once per
  // name, and a value that is an array, or a string with a range, gives each its own.
  struct Turn {
    std::size_t index = 0;
    std::size_t count = 1;
  };

  // The table that is the whole of a file with this text. What is no TOML is told at once.
  static beeline::Outcome<Section> parse(const std::string& text, const std::string& file_name,
                                         Complaint& complaint);

  std::uint32_t line() const;
  Turn turn() const { return turn_; }
  bool has(const char* key) const;
  std::uint32_t line_of(const char* key) const;
  void complain(const char* key, const std::string& reason) const;

  // Complains about keys that are not in `known`.
  void only(const std::vector<std::string>& known) const;

  // The value of `key` for this turn; empty if absent, or after a complaint.
  std::optional<std::string> text(const char* key) const;
  std::optional<std::int64_t> integer(const char* key, std::int64_t low, std::int64_t high) const;
  std::optional<double> number(const char* key, double low, double high) const;
  std::optional<bool> boolean(const char* key) const;
  // `what` names the kind of table in complaints: "[[host.device]]".
  std::optional<Section> table(const char* key, const std::string& what) const;
  std::vector<Section> tables(const char* key, const std::string& what) const;

  // The names that a mandatory `name` stands for, and the same table once for each of them.
  std::vector<std::string> names(std::size_t most, std::size_t max_len) const;
  Section for_turn(Turn turn) const { return Section(table_, what_, turn, complaint_); }

 private:
  // A table of toml++, which takes the compiler long: only toml_section.cc includes it.
  struct Table;

  Section(std::shared_ptr<const Table> table, std::string what, Turn turn, Complaint& complaint);

  std::shared_ptr<const Table> table_;
  std::string what_;
  Turn turn_;
  Complaint& complaint_;
};

}  // namespace softnic
