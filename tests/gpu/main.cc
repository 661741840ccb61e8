// SPDX-License-Identifier: Apache-2.0
//
// Real NCCL over a network plugin, with one GPU: ranks as processes that take one another for
// machines of their own, so that all they exchange goes through the network. Prints one table, and
// exits with 0 if every element was right, 1 if anything was wrong, 77 if this machine lacks a GPU
// or NCCL.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "tests/gpu/nccl_log.h"
#include "tests/gpu/options.h"
#include "tests/gpu/table.h"
#include "tests/gpu/team.h"

namespace beeline::gpu {
namespace {

constexpr int kFine = 0;
constexpr int kWrong = 1;
constexpr int kUnavailable = 77;

// Where NCCL writes what it does. Kept if the caller named it, or if something went wrong.
class LogFolder {
 public:
  explicit LogFolder(std::string given) : path_(std::move(given)), is_ours_(path_.empty()) {
    if (!is_ours_) return;
    path_ = std::filesystem::temp_directory_path() / "gpu-check-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;
  ~LogFolder() {
    std::error_code ignored;
    if (is_ours_ && !is_kept_ && !path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const noexcept { return path_; }
  void keep() { is_kept_ = true; }

 private:
  std::string path_;
  bool is_ours_;
  bool is_kept_ = false;
};

Run plan(const Options& options, const std::string& log_folder, int ranks,
         const std::string& proto) {
  return {.settings = {.plugin = options.plugin,
                       .net = options.net,
                       .algo = options.algo,
                       .proto = proto,
                       .log_folder = log_folder},
          .ranks = ranks,
          .rounds = options.rounds,
          .cases = cases_for(proto, options.most_bytes)};
}

void read_logs(const Run& run, const Options& options, Table& table) {
  for (int rank = 0; rank < run.ranks; ++rank) {
    const NcclLog log = read_nccl_log(log_file(run.settings, rank));
    const std::optional<std::string> fault = find_fault(
        log,
        {.net = options.net, .by_plugin = !options.plugin.empty(), .proto = run.settings.proto});
    if (fault) table.add_fault(run, fmt::format("rank {}: {}", rank, *fault));
    table.add_log(log);
  }
}

void check_run(const Run& run, const Options& options, Table& table) {
  const auto on_case = [&](const Case& one, const CaseResult& result) {
    table.add_row(run, one, result);
  };
  for (const std::string& fault : run_team(run, options.limit, on_case)) {
    table.add_fault(run, fault);
  }
  read_logs(run, options, table);
}

int check_machine(const Options& options) {
  const Outcome<Report> machine = probe_machine(options.limit);
  if (!machine) {
    fmt::print("gpu-check: {}\n", machine.error());
    return kWrong;
  }
  if (machine->kind == ReportKind::kUnavailable) {
    fmt::print("gpu-check: this machine cannot run it\n  {}\n", machine->text.data());
    return kUnavailable;
  }
  fmt::print("{}\n", machine->text.data());
  if (options.only_probe) return kFine;

  LogFolder logs(options.log_folder);
  Table table;
  table.begin(plan(options, logs.path(), options.ranks.front(), options.protos.front()));
  for (const int ranks : options.ranks) {
    for (const std::string& proto : options.protos) {
      const std::string folder = fmt::format("{}/{}-ranks", logs.path(), ranks);
      std::filesystem::create_directories(folder);
      check_run(plan(options, folder, ranks, proto), options, table);
    }
  }
  if (table.end()) return kFine;
  logs.keep();
  fmt::print("NCCL's logs are in {}\n", logs.path());
  return kWrong;
}

}  // namespace
}  // namespace beeline::gpu

int main(int argc, char** argv) {
  using namespace beeline::gpu;
  try {
    return check_machine(read_options(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu-check: %s\n", error.what());
    return 2;
  }
}
