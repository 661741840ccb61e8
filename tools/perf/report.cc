// SPDX-License-Identifier: Apache-2.0
//
// See report.h.
#include "tools/perf/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <numeric>
#include <optional>

namespace beeline::perf {
namespace {

using nlohmann::json;

std::optional<double> merge(const std::vector<json>& shares, const Column& column) {
  std::vector<double> numbers;
  for (const json& share : shares) {
    if (share.contains(column.key)) numbers.push_back(share[column.key].get<double>());
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

// Four digits that matter, in at most eight characters, without an exponent.
std::string number(const json& value) {
  if (!value.is_number()) return "-";
  const double x = value.get<double>();
  const double size = std::abs(x);
  if (x == std::floor(x) && size >= 100) return fmt::format("{:.0f}", x);
  return fmt::format("{:.{}f}", x, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3);
}

std::uint64_t sum_of(const std::vector<json>& shares, const char* key) {
  std::uint64_t sum = 0;
  for (const json& share : shares) sum += share.value(key, std::uint64_t{0});
  return sum;
}

std::string names_of(const json& devices) {
  std::string text;
  for (const json& device : devices) text += (text.empty() ? "" : " ") + device.get<std::string>();
  return text;
}

// Of a rank whose buffers are the host's, and not flushed: nothing.
std::string memory_of(const json& plugin) {
  const json& gpu = plugin["gpu"];
  const bool flushes = plugin.value("flush", false);
  if (gpu.is_null()) return flushes ? ", flushed" : "";
  return fmt::format(", GPU {} {} {} by {}, {}", gpu.value("ordinal", 0), gpu.value("pci", ""),
                     gpu.value("name", ""), plugin.value("memory", ""),
                     flushes ? "flushed" : "not flushed");
}

}  // namespace

Report::Report(const Options& options, const Pattern& pattern)
    : options_(options), pattern_(pattern), out_(options.json == "-" ? stderr : stdout) {}

void Report::begin(const std::vector<json>& plugins) {
  plugins_ = plugins;
  const json& first = plugins_.front();
  fmt::print(out_, "# beeline perf {}: {}\n", pattern_.name, pattern_.summary);
  fmt::print(out_, "# plugin {} (v{}), {}\n", first.value("name", ""), first.value("abi", 0),
             first.value("file", ""));
  fmt::print(out_, "# ranks {} comms {} depth {} slice {}{}\n", options_.ranks, options_.comms,
             options_.depth, options_.slice, options_.check ? "" : " unchecked");
  fmt::print(out_, "# memory {} flush {}\n", to_string(options_.memory), to_string(options_.flush));
  if (options_.pattern == "soak") fmt::print(out_, "# seed {}\n", options_.seed);
  for (size_t r = 0; r < plugins_.size(); ++r) {
    fmt::print(out_, "#  Rank {:2} Pid {:6} on {:>10} devices {}{}\n", r,
               plugins_[r].value("pid", 0), plugins_[r].value("host", ""),
               names_of(plugins_[r]["devices"]), memory_of(plugins_[r]));
  }
  std::string titles =
      fmt::format("#\n# {:>10} {:>12} {:>8} {:>7}", "size", "count", "type", "redop");
  std::string units = fmt::format("# {:>10} {:>12} {:>8} {:>7}", "(B)", "(elements)", "", "");
  for (const Column& column : pattern_.columns) {
    titles += fmt::format(" {:>9}", column.title);
    units += fmt::format(" {:>9}", column.unit);
  }
  fmt::print(out_, "{} {:>7}\n{}\n", titles, "#wrong", units);
  std::fflush(out_);
}

json Report::merged(const std::vector<json>& shares) const {
  json row = json::object();
  const auto size = shares.front().value("size", std::uint64_t{0});
  row["size"] = size;
  row["count"] = size / pattern_.type_bytes;
  row["type"] = pattern_.type;
  row["redop"] = pattern_.redop;
  for (const Column& column : pattern_.columns) {
    if (const auto value = merge(shares, column)) row[column.key] = *value;
  }
  row["wrong"] = sum_of(shares, "wrong");
  row["ranks"] = shares;
  return row;
}

void Report::add_row(const std::vector<json>& shares) {
  const json row = merged(shares);
  std::string text = fmt::format("  {:>10} {:>12} {:>8} {:>7}", row["size"].get<std::uint64_t>(),
                                 row["count"].get<std::uint64_t>(), pattern_.type, pattern_.redop);
  for (const Column& column : pattern_.columns) {
    text += fmt::format(" {:>9}", number(row.value(column.key, json())));
  }
  const auto wrong = row["wrong"].get<std::uint64_t>();
  wrong_ += wrong;
  fmt::print(out_, "{} {:>7}\n", text, options_.check ? fmt::to_string(wrong) : "N/A");
  std::fflush(out_);
  rows_.push_back(row);
}

double Report::average() const {
  double sum = 0;
  for (const json& row : rows_) sum += row.value(pattern_.average, 0.0);
  return rows_.empty() ? 0 : sum / static_cast<double>(rows_.size());
}

int Report::end() {
  const char* const verdict = !options_.check ? "not checked" : wrong_ == 0 ? "OK" : "FAILED";
  fmt::print(out_, "# Wrong elements : {} {}\n", wrong_, verdict);
  const auto column =
      std::find_if(pattern_.columns.begin(), pattern_.columns.end(),
                   [&](const Column& c) { return std::string(c.key) == pattern_.average; });
  const bool is_busbw = std::string(pattern_.average) == "busbw";
  fmt::print(out_, "# Avg {} : {:.6g} {}\n#\n", is_busbw ? "bus bandwidth" : column->title,
             average(), column->unit);
  std::fflush(out_);
  if (!write_json()) return tools::complain("cannot write " + options_.json);
  return wrong_ == 0 ? 0 : tools::kFailed;
}

bool Report::write_json() const {
  if (options_.json.empty()) return true;
  const json all{{"pattern", pattern_.name},
                 {"plugin", plugins_.front().value("name", "")},
                 {"abi", plugins_.front().value("abi", 0)},
                 {"options",
                  {{"ranks", options_.ranks},
                   {"comms", options_.comms},
                   {"depth", options_.depth},
                   {"slice", options_.slice},
                   {"seed", options_.seed},
                   {"check", options_.check},
                   {"memory", to_string(options_.memory)},
                   {"flush", to_string(options_.flush)}}},
                 {"ranks", plugins_},
                 {"rows", rows_},
                 {"wrong", wrong_},
                 {"average", {{pattern_.average, average()}}}};
  if (options_.json == "-") {
    std::cout << all.dump(2) << std::endl;
    return static_cast<bool>(std::cout);
  }
  std::ofstream file(options_.json);
  file << all.dump(2) << '\n';
  return static_cast<bool>(file);
}

}  // namespace beeline::perf
