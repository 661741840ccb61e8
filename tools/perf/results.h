// SPDX-License-Identifier: Apache-2.0
//
// The results of a run, from which the table and the JSON are made.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/perf/messages.h"
#include "tools/perf/row.h"

namespace beeline::perf {

// A line of the table, combined from the rows of all ranks.
struct MergedRow {
  std::uint64_t size = 0;
  std::uint64_t count = 0;                    // of elements
  std::vector<std::optional<double>> values;  // by column of the pattern; none: no rank has it
  std::uint64_t wrong = 0;
  std::vector<Row> shares;  // by rank
};

struct Results {
  std::vector<RankFacts> ranks;
  std::vector<MergedRow> rows;
  std::uint64_t wrong = 0;
  double average = 0;  // of the pattern's column for it
};

}  // namespace beeline::perf
