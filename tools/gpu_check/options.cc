// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

namespace beeline::gpu {
namespace {

constexpr int kUsage = 2;
constexpr int kMostRanks = 16;
constexpr int kMostRounds = 255;  // content.cc uses 8 bits for it
constexpr int kLongestSeconds = 3600;

// Options that are stored in another form in Options.
struct Words {
  int limit_s;
  bool is_probe = false;
  bool is_reading_logs = false;
};

template <class Value>
std::map<std::string, Value> by_name(const std::vector<Value>& values) {
  std::map<std::string, Value> names;
  for (const Value value : values) names.emplace(to_string(value), value);
  return names;
}

void add_what_is_run(CLI::App& app, Options& options, Words& words) {
  app.add_option("--ranks", options.ranks, "How many ranks, one run for each")
      ->delimiter(',')
      ->check(CLI::Range(2, kMostRanks));
  app.add_option("--protos", options.protos, "NCCL_PROTO, one run for each")->delimiter(',');
  app.add_option("--ops", options.ops, "The operations; all of them if not given")
      ->delimiter(',')
      ->transform(CLI::CheckedTransformer(by_name(all_ops())));
  app.add_option("--memory", options.memories,
                 "What the network reads and writes, one run for each; gpudirect+flush is run with "
                 "Simple only. All with a plugin, else host")
      ->delimiter(',')
      ->transform(CLI::CheckedTransformer(
          by_name<Memory>({Memory::kHost, Memory::kGpu, Memory::kGpuFlushed})));
  app.add_option("--algo", options.algo, "NCCL_ALGO");
  app.add_option("--most-bytes", options.most_bytes, "Leave out blocks that are larger");
  app.add_option("--rounds", options.rounds, "How often each operation is repeated")
      ->check(CLI::Range(1, kMostRounds));
  app.add_option("--limit-s", words.limit_s, "Seconds after which a run is killed")
      ->check(CLI::Range(1, kLongestSeconds));
}

void add_the_rest(CLI::App& app, Options& options, Words& words) {
  app.add_option("--net", options.net, "The network that NCCL must use: Beeline, IB or Socket");
  app.add_option("--plugin", options.plugin, "The plugin's file; without it, NCCL's own networks")
      ->check(CLI::ExistingFile);
  app.add_option("--witness", options.witness, "The library that counts what the plugin is asked")
      ->check(CLI::ExistingFile);
  app.add_option("--logs", options.log_folder, "Keep NCCL's logs here")
      ->check(CLI::ExistingDirectory);
  app.add_option("--rows", options.rows_file,
                 "Write a line here for each operation and memory, anew after each run");
  app.add_flag("--probe", words.is_probe, "Only say what this machine has");
  app.add_flag("--read-logs", words.is_reading_logs,
               "Only judge the logs in --logs, of as many ranks as the first --ranks");
  app.add_option(
      "command", options.command,
      "After --: enter the environment of the rank that mpirun, srun or torchrun made of "
      "this process, and become this program");
}

Task task_of(const Options& options, const Words& words) {
  if (words.is_probe) return Task::kProbe;
  if (words.is_reading_logs) return Task::kReadLogs;
  return options.command.empty() ? Task::kCheck : Task::kBeRank;
}

void complete(Options& options, const Words& words) {
  options.limit = std::chrono::seconds(words.limit_s);
  options.task = task_of(options, words);
  if (!options.memories.empty()) return;
  options.memories = {Memory::kHost};
  if (options.plugin.empty()) return;
  options.memories.insert(options.memories.end(), {Memory::kGpu, Memory::kGpuFlushed});
}

}  // namespace

Options read_options(int argc, char** argv) {
  Options options;
  Words words{.limit_s = static_cast<int>(options.limit.count())};
  CLI::App app("Runs NCCL operations between ranks that share one GPU, and checks every element.");
  app.option_defaults()->always_capture_default();
  add_what_is_run(app, options, words);
  add_the_rest(app, options, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : kUsage);
  }
  complete(options, words);
  const bool needs_logs = options.task == Task::kReadLogs || options.task == Task::kBeRank;
  if (needs_logs && options.log_folder.empty()) {
    std::fprintf(stderr, "--read-logs and a command need --logs DIR, where NCCL's logs are\n");
    std::exit(kUsage);
  }
  return options;
}

}  // namespace beeline::gpu
