// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/cli/text_style.h"
#include "tools/cli/text_width.h"
#include "topology/render/table.h"
#include "topology/render/utf8.h"

namespace beeline::doctor {
namespace {

using tools::Color;
using topology::Cells;
using topology::printable;

constexpr std::string_view kFailedWord = "none";
constexpr std::string_view kSlowWord = "slow";
constexpr std::string_view kLateWord = "late";

std::vector<std::string> rail_names(const SurveyedHost& host) {
  std::vector<std::string> names;
  for (const Rail& rail : host.rails.rails) names.push_back(printable(rail.name));
  return names;
}

class TableMaker {
 public:
  TableMaker(const Survey& survey, bool in_gpu_memory)
      : survey_(survey),
        in_gpu_memory_(in_gpu_memory),
        slow_(slow_pairs(survey)),
        late_(late_pairs(survey)) {}

  PairTable make() {
    const bool is_matrix = survey_.hosts.size() == 2;
    is_matrix ? name_rails() : name_hosts();
    const std::string sides =
        is_matrix ? "; rows " + survey_.hosts[0].name + ", columns " + survey_.hosts[1].name : "";
    table_.title = printable((in_gpu_memory_ ? "Memory of GPUs" : "Memory of the hosts") + sides);
    double most = 0;
    for (std::size_t i = 0; i < survey_.pairs.size(); ++i) {
      const ProbedPair& pair = survey_.pairs[i];
      if (pair.in_gpu_memory != in_gpu_memory_) continue;
      Cell& cell = is_matrix ? table_.cells[pair.a.rail][pair.b.rail]
                             : table_.cells[row_of(pair)][pair.a.rail];
      cell = cell_of(i);
      most = std::max(most, cell.gbytes_per_s);
    }
    for (auto& row : table_.cells) {
      for (Cell& cell : row) cell.share = most > 0 ? cell.gbytes_per_s / most : 0;
    }
    return std::move(table_);
  }

 private:
  void name_rails() {
    table_.rows = rail_names(survey_.hosts[0]);
    table_.columns = rail_names(survey_.hosts[1]);
    add_cells();
  }

  void name_hosts() {
    table_.row_title = "hosts";
    for (const SurveyedHost& host : survey_.hosts) {
      std::vector<std::string> names = rail_names(host);
      if (names.size() > table_.columns.size()) table_.columns = std::move(names);
    }
    for (const ProbedPair& pair : survey_.pairs) {
      const std::pair hosts(pair.a.host, pair.b.host);
      if (std::ranges::find(host_pairs_, hosts) == host_pairs_.end()) host_pairs_.push_back(hosts);
    }
    std::ranges::sort(host_pairs_);
    for (const auto& [a, b] : host_pairs_) {
      table_.rows.push_back(survey_.hosts[a].name + ", " + survey_.hosts[b].name);
    }
    add_cells();
  }

  void add_cells() {
    table_.cells.assign(table_.rows.size(), std::vector<Cell>(table_.columns.size()));
  }

  std::size_t row_of(const ProbedPair& pair) const {
    const std::pair hosts(pair.a.host, pair.b.host);
    return static_cast<std::size_t>(std::ranges::find(host_pairs_, hosts) - host_pairs_.begin());
  }

  Cell cell_of(std::size_t place) const {
    const ProbedPair& pair = survey_.pairs[place];
    if (!pair.failure.empty()) return {.state = CellState::kFailed};
    const CellState state = slow_.contains(place)   ? CellState::kSlow
                            : late_.contains(place) ? CellState::kLate
                                                    : CellState::kUsual;
    return {.state = state, .gbytes_per_s = pair.gbytes_per_s, .round_trip_us = pair.round_trip_us};
  }

  const Survey& survey_;
  bool in_gpu_memory_;
  PairSet slow_;
  PairSet late_;
  std::vector<std::pair<std::size_t, std::size_t>> host_pairs_;
  PairTable table_;
};

std::string cell_text(const Cell& cell, bool is_bandwidth) {
  switch (cell.state) {
    case CellState::kNotProbed: return "-";
    case CellState::kFailed: return std::string(kFailedWord);
    case CellState::kUsual:
    case CellState::kSlow:
    case CellState::kLate: break;
  }
  if (is_bandwidth) {
    return fmt::format("{:.2f}{}{}", cell.gbytes_per_s, cell.state == CellState::kSlow ? " " : "",
                       cell.state == CellState::kSlow ? kSlowWord : "");
  }
  return fmt::format("{:.1f}{}{}", cell.round_trip_us, cell.state == CellState::kLate ? " " : "",
                     cell.state == CellState::kLate ? kLateWord : "");
}

// Colors are added to the aligned text, in which they would count as characters. The word stands
// alone there; in a name it is not marked.
void color_word(std::string& text, std::string_view word, Color color) {
  const std::string marked = tools::colored(word, color, true);
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    const std::size_t end = at + word.size();
    const bool is_alone = at > 0 && text[at - 1] == ' ' && (text[end] == ' ' || text[end] == '\n');
    if (is_alone) text.replace(at, word.size(), marked);
    at += is_alone ? marked.size() : word.size();
  }
}

std::string body_text(const PairTable& table, const std::string& corner, bool is_bandwidth,
                      const tools::TextStyle& style) {
  std::vector<Cells> lines;
  Cells& head = lines.emplace_back(Cells{corner});
  head.insert(head.end(), table.columns.begin(), table.columns.end());
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    Cells& line = lines.emplace_back(Cells{printable(table.rows[r])});
    for (const Cell& cell : table.cells[r]) line.push_back(cell_text(cell, is_bandwidth));
  }
  std::string text = topology::aligned(lines, style.width);
  if (!style.in_color) return text;
  color_word(text, kFailedWord, Color::kRed);
  color_word(text, kSlowWord, Color::kYellow);
  color_word(text, kLateWord, Color::kYellow);
  return text;
}

}  // namespace

std::vector<PairTable> tables_of(const Survey& survey) {
  std::vector<PairTable> tables;
  for (const bool in_gpu_memory : {false, true}) {
    if (std::ranges::count(survey.pairs, in_gpu_memory, &ProbedPair::in_gpu_memory) == 0) continue;
    tables.push_back(TableMaker(survey, in_gpu_memory).make());
  }
  return tables;
}

std::string table_text(const PairTable& table, const tools::TextStyle& style) {
  const auto part = [&](const char* what, bool is_bandwidth) {
    return tools::wrapped(table.title + what, 0, style.width) + "\n" +
           body_text(table, printable(table.row_title), is_bandwidth, style);
  };
  return part("; GB/s, the slower direction", true) + "\n" +
         part("; round trip of 8 bytes, us", false);
}

}  // namespace beeline::doctor
