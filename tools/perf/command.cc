// SPDX-License-Identifier: Apache-2.0
//
// CLI11 stores most options as text. They are interpreted in one place, so that all error messages
// have the same form.
#include "tools/perf/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/launchers.h"
#include "tools/perf/options_check.h"
#include "tools/perf/pattern.h"
#include "tools/perf/perf.h"

namespace beeline::perf {
namespace {

// Options of nccl-tests that this command has no use for, or has under another name.
constexpr std::pair<const char*, const char*> kElsewhere[] = {
    {"-g,--ngpus", "each rank is a process: write --ranks N"},
    {"-t,--nthreads", "each rank is a process: write --ranks N"},
    {"-i,--stepbytes", "write -f N, or list the sizes: --sizes 1M,2M,3M"},
    {"-c,--check", "received data is checked unless --no-check is given"},
    {"-o,--op", "allreduce adds up, and no other pattern computes"},
    {"-d,--datatype", "allreduce adds floats, and the other patterns move bytes"},
    {"-r,--root", "no pattern has a root"},
    {"-a,--average", "the last line is the average over all sizes and ranks"},
    {"-T", "write --timeout SECONDS"},
    {"-J,--output_file", "write --json FILE"},
};

// The options as they are on the command line.
struct Words {
  std::string sizes;
  std::string begin;
  std::string end;
  std::optional<int> factor;
  std::string abi;
  std::string devices;
  std::string hosts;
  std::string slice;
  std::string memory = "host";
  std::string flush = "auto";
  std::optional<int> rank;
  std::optional<int> ranks;
  std::string log;
  std::vector<std::string> variables;
  bool unchecked = false;
};

Outcome<ncclDebugLogLevel> parse_log_level(const std::string& text) {
  if (text == "WARN") return NCCL_LOG_WARN;
  if (text == "INFO") return NCCL_LOG_INFO;
  if (text == "TRACE") return NCCL_LOG_TRACE;
  if (text == "NONE") return NCCL_LOG_NONE;
  return fail(fmt::format("--log {}: write NONE, WARN, INFO or TRACE", text));
}

// The user cannot name kEveryRank.
Outcome<int> parse_rank(int rank) {
  if (rank < 0) return fail(fmt::format("--rank {}: the first rank is 0", rank));
  return rank;
}

// Ranks that srun, mpirun or torchrun has started may all have the same command line.
Outcome<bool> ask_launcher(const Words& words, Options* options) {
  if (words.rank || options->rendezvous.empty()) return true;
  const std::optional<LaunchedAs> launched = launched_as();
  if (!launched) return true;
  options->rank = static_cast<int>(launched->rank);
  options->ranks = static_cast<int>(launched->ranks);
  if (words.ranks.value_or(options->ranks) == options->ranks) return true;
  return fail(fmt::format("--ranks {}: the launcher has started {}; omit it, or name --rank",
                          *words.ranks, options->ranks));
}

Outcome<bool> understand(const Words& words, Options* options) {
  const bool has_steps = !words.begin.empty() || !words.end.empty() || words.factor;
  if (has_steps && !words.sizes.empty()) {
    return fail("--sizes and -b, -e, -f both say which sizes to run: use one of them");
  }
  if (!words.sizes.empty()) options->sizes = BL_TRY(parse_sizes(words.sizes));
  if (has_steps) {
    options->sizes = BL_TRY(parse_steps(words.begin, words.end, words.factor));
  }
  if (!words.abi.empty()) options->abi = BL_TRY(parse_abi(words.abi));
  if (!words.devices.empty()) options->devices = BL_TRY(parse_devices(words.devices));
  if (!words.hosts.empty()) options->hosts = split(words.hosts, ',');
  if (std::ranges::any_of(options->hosts, &std::string::empty)) {
    return fail(fmt::format("--hosts {}: an entry is empty; write h0,h1", words.hosts));
  }
  if (!words.slice.empty()) options->slice = BL_TRY(parse_size(words.slice));
  options->memory = BL_TRY(parse_memory(words.memory));
  options->flush = BL_TRY(parse_flush(words.flush));
  if (!words.log.empty()) options->log_level = BL_TRY(parse_log_level(words.log));
  if (words.rank) options->rank = BL_TRY(parse_rank(*words.rank));
  if (words.ranks) options->ranks = *words.ranks;
  BL_TRY(ask_launcher(words, options));
  for (const std::string& text : words.variables) {
    options->variables.push_back(BL_TRY(parse_variable(text)));
  }
  options->check = !words.unchecked;
  return check_options(*options);
}

void add_work(tools::Subcommand& perf, Options& options, Words& words) {
  perf.begin_group("Work");
  perf.add("pattern", options.pattern, "What to run: one of the patterns");
  perf.add("--sizes", words.sizes, "Bytes: 0,7,4K,8..64M; a range doubles (per pattern)");
  perf.add("-b,--minbytes", words.begin, "As in nccl-tests: the smallest size, such as 8 or 4K");
  perf.add("-e,--maxbytes", words.end, "The largest size, up to 1G (-b)");
  perf.add("-f,--stepfactor", words.factor, "Each size is this many times the one before (2)");
  perf.add("--seconds", options.seconds,
           "Seconds per size, or of the whole soak (0.4; connect: five times)");
  perf.add("-n,--iters", options.iterations,
           "Exactly this number of iterations (connect: times; soak: epochs)");
  perf.add("-w,--warmup_iters", options.warm_up,
           "Iterations before these, which are not measured (per pattern)");
  perf.add("--depth", options.depth, "Requests in flight per comm (8)");
  perf.add("--comms", options.comms, "Comms per pair, or channels of the ring (1)");
  perf.add("--slice", words.slice, "allreduce: largest message (512K)");
  perf.add("--seed", options.seed, "soak: the seed of its random numbers");
  perf.add_flag("--no-check", words.unchecked, "Do not check received data");
  perf.add_flag("--check-every", options.check_every,
                "stream, rate, bidir: check every message, not some; costs speed");
}

void add_plugin(tools::Subcommand& perf, Options& options, Words& words) {
  perf.begin_group("Plugin, devices, memory");
  perf.add("--plugin", options.plugin, "A file, or X for libnccl-net-X.so (Beeline's)");
  perf.add("--abi", words.abi, "Version of the plugin's table, v6 to v12 (its newest)");
  perf.add("--dev", words.devices,
           "Devices by name, such as mlx5_0, or number: a1,b1/a2,b2 is a group per comm, in it one "
           "per rank");
  perf.add("--rails", options.rails, "Merge so many devices into one, as NCCL does (1; v9 on)");
  perf.add("--memory", words.memory,
           "Where buffers are: host, or on a GPU as peermem, dmabuf or mixed (host)");
  perf.add("--flush", words.flush,
           "Flush received data: auto (where NCCL would), always, never (auto)");
  perf.add_each("--env", words.variables, "[RANK:]NAME=VALUE, set before the plugin is loaded");
  perf.add_flag("--list,--dry", options.list, "Show the plugin's devices, run nothing");
}

void add_ranks(tools::Subcommand& perf, Options& options, Words& words) {
  perf.begin_group("Ranks");
  perf.add("--ranks", words.ranks, "How many ranks, each a process (2)");
  perf.add("--hosts", words.hosts, "softnic hosts of the ranks, in turn: h0,h1");
  perf.add("--rank", words.rank, "Run only this rank; the others are started elsewhere");
  perf.add("--rendezvous", options.rendezvous,
           "How to find rank 0: a file for its address and a token, or HOST:PORT with a secret in "
           "BEELINE_RENDEZVOUS_TOKEN. Without --rank, "
           "srun, mpirun or torchrun says which rank this is, and how many there are");
  perf.add_flag("--pin", options.pin, "Pin each rank to a processor");
}

void add_output(tools::Subcommand& perf, Options& options, Words& words) {
  perf.begin_group("Output and time limits");
  perf.add("--json", options.json,
           "Write all results, or the devices of --list, into this file; - is stdout");
  perf.add("--log", words.log, "The plugin's log: NONE, WARN, INFO, TRACE (NCCL_DEBUG, or WARN)");
  perf.add("--timeout", options.timeout_seconds,
           "Give up after this many seconds without progress (120)");
  perf.add("--hold", options.hold_seconds,
           "Let all ranks go on for this long after a failure, to see their errors (0)");
}

std::string list_patterns() {
  std::string text = "Patterns:\n";
  for (const Pattern& pattern : all_patterns()) {
    text += fmt::format("  {:9}  {} (--sizes {})\n", pattern.name, pattern.summary, pattern.sizes);
  }
  return text;
}

}  // namespace

void add_command(tools::CommandLine& line) {
  const auto options = std::make_shared<Options>();
  const auto words = std::make_shared<Words>();
  const auto start = [options, words] {
    const Outcome<bool> understood = understand(*words, options.get());
    if (!understood) return tools::print_error(understood.error(), tools::kUsage);
    return run(*options);
  };
  tools::Subcommand perf =
      line.add("perf", "Call a network plugin as NCCL would, without NCCL", start);
  add_work(perf, *options, *words);
  add_plugin(perf, *options, *words);
  add_ranks(perf, *options, *words);
  add_output(perf, *options, *words);
  for (const auto& [names, instead] : kElsewhere) perf.refuse(names, instead);
  perf.set_footer(list_patterns());
  std::vector<std::string> patterns;
  for (const Pattern& pattern : all_patterns()) patterns.emplace_back(pattern.name);
  line.offer("perf", std::move(patterns));
}

}  // namespace beeline::perf
