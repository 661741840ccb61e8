// SPDX-License-Identifier: Apache-2.0
//
// See table.h.
#include "tests/gpu/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

namespace beeline::gpu {
namespace {

constexpr std::size_t kMostWarnings = 12;

// Two ends of a ring each carry 2(n-1)/n of the data: nccl-tests' "bus bandwidth".
double bus_gigabytes_per_second(const Case& one, int ranks, double seconds) {
  const double share = 2.0 * (ranks - 1) / ranks;
  return static_cast<double>(one.bytes()) * share / seconds / 1e9;
}

void print_variables(const char* title, const Variables& variables) {
  for (const auto& [name, value] : variables) {
    fmt::print("{:<8} {}={}\n", title, name, value);
    title = "";
  }
}

std::string list_or(const std::set<std::string>& words, const char* none) {
  return words.empty() ? none : fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

void Table::begin(const Run& run) {
  Variables common;
  for (const auto& variable : common_variables(run.settings)) {
    if (variable.first != "NCCL_PROTO") common.push_back(variable);  // a column of the table
  }
  print_variables("set", common);
  print_variables("each", rank_variables(run.settings, 0));
  print_variables("found", inherited_variables(run.settings));
  fmt::print("\n{:>5}  {:<6}  {:<6}{:>10}{:>12}{:>12}{:>9}{:>9}\n", "ranks", "proto", "type",
             "count", "bytes", "time us", "GB/s", "wrong");
}

void Table::add_row(const Run& run, const Case& one, const CaseResult& result) {
  fmt::print("{:>5}  {:<6}  {:<6}{:>10}{:>12}{:>12.1f}{:>9.3f}{:>9}\n", run.ranks,
             run.settings.proto, to_string(one.type), one.count, one.bytes(), result.seconds * 1e6,
             bus_gigabytes_per_second(one, run.ranks, result.seconds), result.wrong);
  std::fflush(stdout);
  reduced_ += static_cast<std::uint64_t>(run.rounds);
  if (result.wrong == 0) return;
  add_fault(run, fmt::format("{}: {} wrong, the first at {}", describe(one), result.wrong,
                             result.first_wrong));
}

void Table::add_fault(const Run& run, const std::string& what) {
  faults_.push_back(fmt::format("{} ranks, {}: {}", run.ranks, run.settings.proto, what));
  fmt::print("  {}\n", faults_.back());
  std::fflush(stdout);
}

void Table::add_log(const NcclLog& log) {
  if (!log.plugin.empty()) plugins_.insert(log.plugin);
  networks_.insert(log.networks.begin(), log.networks.end());
  protos_.insert(log.protos.begin(), log.protos.end());
  warnings_.insert(log.warnings.begin(), log.warnings.end());
}

bool Table::end() const {
  fmt::print("\nnetwork  {}\nplugin   {}\nproto    {}\n", list_or(networks_, "not said"),
             list_or(plugins_, "none loaded"), list_or(protos_, "not said"));
  std::size_t shown = 0;
  for (const std::string& warning : warnings_) {
    if (++shown <= kMostWarnings) fmt::print("warning  {}\n", warning);
  }
  if (shown > kMostWarnings) fmt::print("warning  and {} more\n", shown - kMostWarnings);
  const bool is_good = faults_.empty() && reduced_ > 0;
  fmt::print("\ngpu-check: {} all-reduces verified, {} faults: {}\n", reduced_, faults_.size(),
             is_good ? "PASSED" : "FAILED");
  return is_good;
}

}  // namespace beeline::gpu
