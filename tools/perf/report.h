// SPDX-License-Identifier: Apache-2.0
//
// The output of a run: a table in the format of nccl-tests, and JSON with all details.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/perf/options.h"
#include "tools/perf/pattern.h"
#include "tools/perf/results.h"

namespace beeline::perf {

// A line of the table.
struct Cells {
  std::string size;
  std::string count;
  std::string type;
  std::string redop;
  std::vector<std::string> values;
  std::string wrong = {};
};

class Report {
 public:
  Report(const Options& options, const Pattern& pattern);

  // Prints the head of the table. `ranks` is indexed by rank.
  void begin(std::vector<RankFacts> ranks);
  // Prints one line from the rows of all ranks, which are indexed by rank.
  void add_row(std::vector<Row> shares);
  // Prints the last lines and writes the JSON file. Returns the exit status as far as it depends on
  // the data.
  int end();

  std::uint64_t wrong() const noexcept { return results_.wrong; }

 private:
  MergedRow merged(std::vector<Row> shares) const;
  Outcome<void> write_json() const;
  const Column& averaged() const;
  double average() const;

  // A line that begins with "#"; further lines if it is too long.
  void print_remark(const std::string& text) const;
  std::string line_of(const Cells& cells) const;

  const Options& options_;
  const Pattern& pattern_;
  std::FILE* const out_;     // stderr when the JSON goes to stdout
  const std::size_t width_;  // of the terminal; without one, no line is too long
  Results results_;
};

}  // namespace beeline::perf
