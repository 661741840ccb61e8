// SPDX-License-Identifier: Apache-2.0
//
// What the user gets to read: a table in the shape that nccl-tests made known, and JSON with all
// there is.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tools/perf/options.h"
#include "tools/perf/pattern.h"
#include "tools/perf/results.h"

namespace beeline::perf {

class Report {
 public:
  Report(const Options& options, const Pattern& pattern);

  // What each rank told about itself, by rank; prints the head of the table.
  void begin(std::vector<RankFacts> ranks);
  // The shares of all ranks in one line, by rank.
  void add_row(std::vector<Row> shares);
  // The last line and the JSON file. The exit status of the run, as far as data decides it.
  int end();

  std::uint64_t wrong() const noexcept { return results_.wrong; }

 private:
  MergedRow merged(std::vector<Row> shares) const;
  bool write_json() const;
  const Column& averaged() const;
  double average() const;

  const Options& options_;
  const Pattern& pattern_;
  std::FILE* const out_;  // stderr when the JSON goes to stdout
  Results results_;
};

}  // namespace beeline::perf
