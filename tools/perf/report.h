// SPDX-License-Identifier: Apache-2.0
//
// What the user gets to read: a table in the shape that nccl-tests made known, and JSON with all
// there is.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include "tools/perf/options.h"
#include "tools/perf/pattern.h"

namespace beeline::perf {

class Report {
 public:
  Report(const Options& options, const Pattern& pattern);

  // What each rank told about its plugin, by rank; prints the head of the table.
  void begin(const std::vector<nlohmann::json>& plugins);
  // The shares of all ranks in one line, by rank.
  void add_row(const std::vector<nlohmann::json>& shares);
  // The last line and the JSON file. The exit status of the run, as far as data decides it.
  int end();

  size_t rows() const noexcept { return rows_.size(); }
  std::uint64_t wrong() const noexcept { return wrong_; }

 private:
  nlohmann::json merged(const std::vector<nlohmann::json>& shares) const;
  bool write_json() const;
  double average() const;

  const Options& options_;
  const Pattern& pattern_;
  std::FILE* const out_;  // stderr when the JSON goes to stdout
  std::vector<nlohmann::json> plugins_;
  std::vector<nlohmann::json> rows_;
  std::uint64_t wrong_ = 0;
};

}  // namespace beeline::perf
