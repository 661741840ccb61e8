// SPDX-License-Identifier: Apache-2.0
//
// Tables of the bandwidth and the round trip between the rails of several hosts.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/text_style.h"
#include "tools/doctor/peers/survey.h"
#include "tools/doctor/peers/verdicts.h"

namespace beeline::doctor {

enum class CellState : std::uint8_t { kUsual, kSlow, kLate, kFailed, kNotProbed };

struct Cell {
  CellState state = CellState::kNotProbed;
  double gbytes_per_s = 0;
  double round_trip_us = 0;
  double share = 0;  // of the most data that any pair of the table moves
};

// Two hosts: a row for each rail of the first, and a column for each of the second. More hosts: a
// row for each pair of hosts, and a column for each rail.
struct PairTable {
  std::string title;
  std::string row_title;
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<std::vector<Cell>> cells;  // by row and column
};

// One table for each kind of memory that was used. None if nothing was probed.
std::vector<PairTable> tables_of(const Survey& survey);

// `in_color`: for a terminal.
std::string table_text(const PairTable& table, const tools::TextStyle& style);

}  // namespace beeline::doctor
