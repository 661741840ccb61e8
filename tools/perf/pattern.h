// SPDX-License-Identifier: Apache-2.0
//
// The patterns that can be run, and how the rows of all ranks become the lines of their tables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/perf/rank.h"

namespace beeline::perf {

// How the numbers of several ranks are combined. Ranks without a number are ignored.
enum class Merge { kMean, kLeast, kGreatest, kSum };

struct Column {
  const char* key;    // in a rank's row and in the JSON
  const char* title;  // two lines, as nccl-tests has them: name, then unit
  const char* unit;
  Merge merge;
};

struct Pattern {
  const char* name;
  const char* summary;
  const char* sizes;           // when none are given
  const char* type = "uint8";  // of an element, or "float"
  size_t type_bytes = 1;
  const char* redop = "none";
  std::vector<Column> columns;  // between redop and #wrong
  const char* average;          // the column whose mean ends the output
  const char* compared;         // a description of the compared data
  Outcome<bool> (*run)(Rank& rank);
};

std::span<const Pattern> all_patterns();
const Pattern* find_pattern(const std::string& name);
// A description of the data that a run with these options compares. It does compare some.
const char* compared(const Pattern& pattern, const Options& options);

Outcome<bool> run_latency(Rank& rank);
Outcome<bool> run_stream(Rank& rank);
Outcome<bool> run_rate(Rank& rank);
Outcome<bool> run_bidir(Rank& rank);
Outcome<bool> run_multirecv(Rank& rank);
Outcome<bool> run_connect(Rank& rank);
Outcome<bool> run_allreduce(Rank& rank);
Outcome<bool> run_soak(Rank& rank);

}  // namespace beeline::perf
