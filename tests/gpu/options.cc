// SPDX-License-Identifier: Apache-2.0
//
// See options.h.
#include "tests/gpu/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace beeline::gpu {
namespace {

constexpr int kUsage = 2;
constexpr int kMostRanks = 16;
constexpr int kMostRounds = 255;  // content has 8 bits for it
constexpr int kLongestSeconds = 3600;

void add_options(CLI::App& app, Options& options, int& limit_s) {
  app.add_option("--ranks", options.ranks, "How many ranks, one run for each")
      ->delimiter(',')
      ->check(CLI::Range(2, kMostRanks));
  app.add_option("--protos", options.protos, "NCCL_PROTO, one run for each")->delimiter(',');
  app.add_option("--algo", options.algo, "NCCL_ALGO");
  app.add_option("--net", options.net, "The network that NCCL must use: Beeline, IB or Socket");
  app.add_option("--plugin", options.plugin, "The plugin's file; without it, NCCL's own networks")
      ->check(CLI::ExistingFile);
  app.add_option("--most-bytes", options.most_bytes, "Leave out what is larger");
  app.add_option("--rounds", options.rounds, "How often each all-reduce is repeated")
      ->check(CLI::Range(1, kMostRounds));
  app.add_option("--limit-s", limit_s, "Seconds after which a run is killed")
      ->check(CLI::Range(1, kLongestSeconds));
  app.add_option("--logs", options.log_folder, "Keep NCCL's logs here")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--probe", options.only_probe, "Only say what this machine has");
}

}  // namespace

Options read_options(int argc, char** argv) {
  Options options;
  int limit_s = static_cast<int>(options.limit.count());
  CLI::App app("Runs NCCL all-reduces between ranks that share one GPU, and checks every element.");
  app.option_defaults()->always_capture_default();
  add_options(app, options, limit_s);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : kUsage);
  }
  options.limit = std::chrono::seconds(limit_s);
  return options;
}

}  // namespace beeline::gpu
