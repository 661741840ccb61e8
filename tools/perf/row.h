// SPDX-License-Identifier: Apache-2.0
//
// The results of one rank for a line of the table: numbers with names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/perf/cpu_time.h"

namespace beeline::perf {

class Row {
 public:
  // A count is an integer in JSON.
  using Number = std::variant<std::uint64_t, double>;
  struct Entry {
    std::string key;  // a column's (pattern.h), or one that only the JSON has
    Number number;
  };

  explicit Row(std::uint64_t size) : size_(size) {}

  // The size of a message, or of the data of an all-reduce, in bytes.
  std::uint64_t size() const noexcept { return size_; }
  // The number of wrong elements.
  std::uint64_t wrong() const noexcept { return wrong_; }
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const std::optional<CpuPerMessage>& cpu() const noexcept { return cpu_; }

  void set_wrong(std::uint64_t wrong) noexcept { wrong_ = wrong; }
  void set_cpu(const CpuPerMessage& cpu) noexcept { cpu_ = cpu; }
  // Each key occurs once.
  void set(std::string key, Number number);

  std::optional<double> find(const std::string& key) const;

 private:
  std::uint64_t size_;
  std::uint64_t wrong_ = 0;
  std::vector<Entry> entries_;
  std::optional<CpuPerMessage> cpu_;
};

}  // namespace beeline::perf
