// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/checking.h"

#include <fmt/format.h>

#include <filesystem>

#include "tools/gpu_check/nccl_log.h"
#include "tools/gpu_check/summary.h"
#include "tools/gpu_check/table.h"
#include "tools/gpu_check/team.h"
#include "tools/gpu_check/witness.h"

namespace beeline::gpu {
namespace {

struct Books {
  Table table;
  Summary summary;

  void add_fault(const Run& run, const std::string& what) {
    table.add_fault(run, what);
    summary.add_fault(run, what);
  }
  // The log or the witness shows that NCCL did not use what the run was to test.
  void add_fault_of_way(const Run& run, int rank, const std::string& what) {
    add_fault(run, fmt::format("rank {}: {}", rank, what));
    summary.discount(run);
  }
};

Run plan(const Options& options, const std::string& log_folder, int ranks, Memory memory,
         const std::string& proto) {
  return {.settings = {.plugin = options.plugin,
                       .witness = options.witness,
                       .net = options.net,
                       .algo = options.algo,
                       .proto = proto,
                       .memory = memory,
                       .log_folder = log_folder},
          .ranks = ranks,
          .rounds = options.rounds,
          .cases = cases_for(options.ops, proto, options.most_bytes)};
}

void read_log(const Run& run, int rank, Books& books) {
  const NcclLog log = read_nccl_log(log_file(run.settings, rank));
  const RunSettings& settings = run.settings;
  const std::optional<std::string> fault = find_fault(log, {.net = settings.net,
                                                            .by_plugin = !settings.plugin.empty(),
                                                            .proto = settings.proto,
                                                            .memory = settings.memory});
  if (fault) books.add_fault_of_way(run, rank, *fault);
  books.table.add_log(log);
  books.summary.add_log(run, log);
}

std::optional<std::string> find_call_fault(const std::optional<Calls>& calls, Memory memory) {
  if (!calls) return "NCCL did not load the witness";
  if (memory == Memory::kHost) return std::nullopt;
  if (calls->dmabufs + calls->pointers == 0) {
    return "NCCL gave the plugin no GPU memory, in spite of GPUDirect";
  }
  if (memory == Memory::kGpuFlushed && calls->flushes == 0) {
    return "NCCL asked for no flush, in spite of NCCL_NET_FORCE_FLUSH=1";
  }
  return std::nullopt;
}

// Facts that are not in NCCL's log.
void read_witness(const Run& run, int rank, Books& books) {
  if (run.settings.witness.empty()) return;
  const std::optional<Calls> calls = read_calls(calls_file(run.settings, rank));
  const std::optional<std::string> fault = find_call_fault(calls, run.settings.memory);
  if (fault) books.add_fault_of_way(run, rank, *fault);
  if (calls) books.table.add_calls(*calls);
}

void read_what_ranks_left(const Run& run, Books& books) {
  for (int rank = 0; rank < run.ranks; ++rank) {
    read_log(run, rank, books);
    read_witness(run, rank, books);
  }
}

void check_run(const Run& run, const Options& options, Books& books) {
  books.summary.begin(run);
  const auto on_case = [&](const Case& one, const CaseResult& result) {
    books.table.add_row(run, one, result);
    books.summary.add_case(run, one, result);
  };
  for (const std::string& fault : run_team(run, options.limit, on_case)) {
    books.add_fault(run, fault);
  }
  read_what_ranks_left(run, books);
}

// NCCL calls iflush with protocol Simple only.
bool is_wanted(Memory memory, const std::string& proto) {
  return memory != Memory::kGpuFlushed || proto == "Simple";
}

}  // namespace

bool check_by_runs(const Options& options, const std::string& log_folder) {
  Books books;
  bool is_saved = true;
  Table::begin(plan(options, log_folder, options.ranks.front(), options.memories.front(),
                    options.protos.front()));
  for (const int ranks : options.ranks) {
    for (const Memory memory : options.memories) {
      for (const std::string& proto : options.protos) {
        if (!is_wanted(memory, proto)) continue;
        const std::string folder =
            fmt::format("{}/{}-ranks/{}", log_folder, ranks, to_string(memory));
        std::filesystem::create_directories(folder);
        check_run(plan(options, folder, ranks, memory, proto), options, books);
        is_saved = options.rows_file.empty() || books.summary.write(options.rows_file);
      }
    }
  }
  const bool is_good = books.table.end();
  if (is_saved) return is_good;
  fmt::print("gpu-check: {} cannot be written\n", options.rows_file);
  return false;
}

bool check_by_logs(const Options& options) {
  Books books;
  const Run run =
      plan(options, options.log_folder, options.ranks.front(), options.memories.front(), "");
  read_what_ranks_left(run, books);
  books.table.end_rows();
  return !books.table.has_faults();
}

}  // namespace beeline::gpu
