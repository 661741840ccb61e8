// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "common/base/terminal_text.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text_style.h"
#include "tools/perf/json.h"

namespace beeline::perf {
namespace {

std::optional<double> merge(const std::vector<Row>& shares, const Column& column) {
  std::vector<double> numbers;
  for (const Row& share : shares) {
    if (const auto number = share.find(column.key)) numbers.push_back(*number);
  }
  if (numbers.empty()) return std::nullopt;
  const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  switch (column.merge) {
    case Merge::kMean: return sum / static_cast<double>(numbers.size());
    case Merge::kLeast: return *std::min_element(numbers.begin(), numbers.end());
    case Merge::kGreatest: return *std::max_element(numbers.begin(), numbers.end());
    case Merge::kSum: return sum;
  }
  return std::nullopt;
}

// Four significant digits, in at most eight characters, without an exponent.
std::string number(const std::optional<double>& value) {
  if (!value) return "-";
  const double x = *value;
  const double size = std::abs(x);
  if (x == std::floor(x) && size >= 100) return fmt::format("{:.0f}", x);
  return fmt::format("{:.{}f}", x, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

// Empty for a rank with buffers in host memory that are not flushed.
std::string memory_of(const RankFacts& rank) {
  if (!rank.gpu) return rank.flush ? ", flushed" : "";
  return fmt::format(", GPU {} {} {} by {}, {}", rank.gpu->ordinal, rank.gpu->pci, rank.gpu->name,
                     rank.memory, rank.flush ? "flushed" : "not flushed");
}

}  // namespace

Report::Report(const Options& options, const Pattern& pattern)
    : options_(options),
      pattern_(pattern),
      out_(options.json == "-" ? stderr : stdout),
      width_(terminal_columns(::fileno(out_)) == 0 ? std::string::npos
                                                   : terminal_columns(::fileno(out_))) {}

void Report::print_remark(const std::string& text) const {
  const std::size_t indent = std::min(text.find_first_not_of(' '), text.size());
  std::string lines =
      "# " + text.substr(0, indent) + broken_at_blanks(text.substr(indent), 2 + indent, 4, width_);
  for (std::size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at + 1)) {
    lines[at + 1] = '#';
  }
  fmt::print(out_, "{}\n", lines);
}

// Without room for the usual columns, those are left out that are the same in each line or follow
// from the size.
std::string Report::line_of(const Cells& cells) const {
  const std::size_t columns = cells.values.size();
  const std::size_t usual = 50 + 10 * columns;
  std::string text;
  if (width_ >= usual) {
    text =
        fmt::format("{:>10} {:>12} {:>8} {:>7}", cells.size, cells.count, cells.type, cells.redop);
    for (const std::string& value : cells.values) text += fmt::format(" {:>9}", value);
    text += fmt::format(" {:>7}", cells.wrong);
  } else {
    const std::size_t others = 9 + 9 * columns;
    text = fmt::format("{:>{}}", cells.size,
                       std::clamp<std::size_t>(width_ - std::min(width_, others), 6, 10));
    for (const std::string& value : cells.values) text += fmt::format(" {:>8}", value);
    text += fmt::format(" {:>6}", cells.wrong);
  }
  return text.erase(text.find_last_not_of(' ') + 1);
}

void Report::begin(std::vector<RankFacts> ranks) {
  results_.ranks = std::move(ranks);
  const RankFacts& first = results_.ranks.front();
  print_remark(fmt::format("beeline perf {}: {}", pattern_.name, pattern_.summary));
  print_remark(fmt::format("plugin {} (v{}), {}", first.name, first.abi, first.file));
  print_remark(fmt::format("ranks {} comms {} depth {} slice {}{}", options_.ranks, options_.comms,
                           options_.depth, options_.slice, options_.check ? "" : " unchecked"));
  print_remark(
      fmt::format("memory {} flush {}", to_string(options_.memory), to_string(options_.flush)));
  if (options_.pattern == "soak") print_remark(fmt::format("seed {}", options_.seed));
  for (size_t r = 0; r < results_.ranks.size(); ++r) {
    const RankFacts& rank = results_.ranks[r];
    print_remark(fmt::format(" Rank {:2} Pid {:6} on {:>10} devices {}{}", r, rank.pid, rank.host,
                             joined(rank.devices), memory_of(rank)));
  }
  Cells titles = {"size", "count", "type", "redop", {}, "#wrong"};
  Cells units = {"(B)", "(elements)", "", "", {}};
  for (const Column& column : pattern_.columns) {
    titles.values.emplace_back(column.title);
    units.values.emplace_back(column.unit);
  }
  fmt::print(out_, "#\n# {}\n# {}\n", line_of(titles), line_of(units));
  std::fflush(out_);
}

MergedRow Report::merged(std::vector<Row> shares) const {
  MergedRow row;
  row.size = shares.front().size();
  row.count = row.size / pattern_.type_bytes;
  for (const Column& column : pattern_.columns) row.values.push_back(merge(shares, column));
  for (const Row& share : shares) row.wrong += share.wrong();
  row.shares = std::move(shares);
  return row;
}

void Report::add_row(std::vector<Row> shares) {
  MergedRow row = merged(std::move(shares));
  Cells cells = {fmt::to_string(row.size),
                 fmt::to_string(row.count),
                 pattern_.type,
                 pattern_.redop,
                 {},
                 options_.check ? fmt::to_string(row.wrong) : "N/A"};
  for (const auto& value : row.values) cells.values.push_back(number(value));
  results_.wrong += row.wrong;
  fmt::print(out_, "  {}\n", line_of(cells));
  std::fflush(out_);
  results_.rows.push_back(std::move(row));
}

const Column& Report::averaged() const {
  return *std::find_if(pattern_.columns.begin(), pattern_.columns.end(), [&](const Column& column) {
    return std::string(column.key) == pattern_.average;
  });
}

double Report::average() const {
  const auto index = static_cast<size_t>(&averaged() - pattern_.columns.data());
  double sum = 0;
  for (const MergedRow& row : results_.rows) sum += row.values[index].value_or(0);
  return results_.rows.empty() ? 0 : sum / static_cast<double>(results_.rows.size());
}

int Report::end() {
  const std::uint64_t wrong = results_.wrong;
  const char* const verdict = !options_.check ? "not checked" : wrong == 0 ? "OK" : "FAILED";
  const auto color = !options_.check ? tools::Color::kNone
                     : wrong == 0    ? tools::Color::kGreen
                                     : tools::Color::kRed;
  print_remark(fmt::format("Compared : {}",
                           options_.check ? compared(pattern_, options_) : "nothing (--no-check)"));
  fmt::print(out_, "# Wrong elements : {} {}\n", wrong,
             tools::colored(verdict, color, tools::wants_color(::fileno(out_))));
  results_.average = average();
  const bool is_busbw = std::string(pattern_.average) == "busbw";
  fmt::print(out_, "# Avg {} : {:.6g} {}\n#\n", is_busbw ? "bus bandwidth" : averaged().title,
             results_.average, averaged().unit);
  std::fflush(out_);
  if (const Outcome<void> written = write_json(); !written) {
    return tools::print_error(written.error());
  }
  return wrong == 0 ? 0 : tools::kFailed;
}

Outcome<void> Report::write_json() const {
  if (options_.json.empty()) return {};
  return tools::write_output(options_.json, to_json(options_, pattern_, results_) + "\n");
}

}  // namespace beeline::perf
