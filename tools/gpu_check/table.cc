// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

namespace beeline::gpu {
namespace {

constexpr std::size_t kMostWarnings = 12;

// nccl-tests' "bus bandwidth": the data that each rank's link would have to carry.
double bus_gigabytes_per_second(const Case& one, int ranks, double seconds) {
  const double others = ranks - 1;
  double share = 1;
  switch (one.op) {
    case Op::kAllReduce: share = 2 * others / ranks; break;
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kAllToAll: share = others; break;
    case Op::kSendRecv: break;
  }
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
  print_variables("set", common_variables(run.settings));
  print_variables("run", run_variables(run.settings));
  print_variables("each", rank_variables(run.settings, 0));
  print_variables("found", inherited_variables(run.settings));
  fmt::print("\n{:<14}  {:>5}  {:<15}  {:<6}  {:<6}{:>10}{:>12}{:>12}{:>9}{:>9}\n", "operation",
             "ranks", "memory", "proto", "type", "count", "bytes", "time us", "GB/s", "wrong");
}

void Table::add_row(const Run& run, const Case& one, const CaseResult& result) {
  fmt::print("{:<14}  {:>5}  {:<15}  {:<6}  {:<6}{:>10}{:>12}{:>12.1f}{:>9.3f}{:>9}\n",
             to_string(one.op), run.ranks, to_string(run.settings.memory), run.settings.proto,
             to_string(one.type), one.count, one.bytes(), result.seconds * 1e6,
             bus_gigabytes_per_second(one, run.ranks, result.seconds), result.wrong);
  std::fflush(stdout);
  verified_ += static_cast<std::uint64_t>(run.rounds);
  if (result.wrong == 0) return;
  add_fault(run, fmt::format("{}: {} wrong, the first at {}", describe(one), result.wrong,
                             result.first_wrong));
}

void Table::add_fault(const Run& run, const std::string& what) {
  const std::string& proto = run.settings.proto;
  faults_.push_back(fmt::format("{} ranks, {}{}{}: {}", run.ranks, to_string(run.settings.memory),
                                proto.empty() ? "" : ", ", proto, what));
  fmt::print("  {}\n", faults_.back());
  std::fflush(stdout);
}

void Table::add_log(const NcclLog& log) {
  if (!log.version.empty()) versions_.insert(log.version);
  if (!log.plugin.empty()) plugins_.insert(log.plugin);
  networks_.insert(log.networks.begin(), log.networks.end());
  protos_.insert(log.protos.begin(), log.protos.end());
  warnings_.insert(log.warnings.begin(), log.warnings.end());
  paths_ += log.paths;
  direct_paths_ += log.direct_paths;
}

void Table::add_calls(const Calls& calls) {
  has_calls_ = true;
  calls_.flushes += calls.flushes;
  calls_.dmabufs += calls.dmabufs;
  calls_.pointers += calls.pointers;
}

void Table::end_rows() const {
  fmt::print("\nnccl     {}\nnetwork  {}\nplugin   {}\nproto    {}\n",
             list_or(versions_, "not said"), list_or(networks_, "not said"),
             list_or(plugins_, "none loaded"), list_or(protos_, "not said"));
  fmt::print("paths    {}, {} of them with GPUDirect\n", paths_, direct_paths_);
  if (has_calls_) {
    fmt::print("asked    GPU memory registered {} times as a dma-buf, {} by address; {} flushes\n",
               calls_.dmabufs, calls_.pointers, calls_.flushes);
  }
  std::size_t shown = 0;
  for (const std::string& warning : warnings_) {
    if (++shown <= kMostWarnings) fmt::print("warning  {}\n", warning);
  }
  if (shown > kMostWarnings) fmt::print("warning  and {} more\n", shown - kMostWarnings);
}

bool Table::end() const {
  end_rows();
  const bool is_good = faults_.empty() && verified_ > 0;
  fmt::print("\ngpu-check: {} operations verified, {} faults: {}\n", verified_, faults_.size(),
             is_good ? "PASSED" : "FAILED");
  return is_good;
}

}  // namespace beeline::gpu
