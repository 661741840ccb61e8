// SPDX-License-Identifier: Apache-2.0
//
// Ranks are forked before this process has other threads, and before the plugin is loaded.
#include "tools/perf/perf.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>

#include "common/base/clock.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/unknown_word.h"
#include "tools/perf/coordinator.h"
#include "tools/perf/json.h"
#include "tools/perf/rank_process.h"
#include "tools/ranks/admission.h"
#include "tools/ranks/rendezvous.h"

namespace beeline::perf {
namespace {

using Processes = std::vector<ranks::Process>;

// `others` are connections of the coordinator, which a rank must close.
Outcome<ranks::Process> start_rank(const Options& options, const Pattern& pattern, int rank,
                                   Processes& others) {
  ranks::Process other = BL_TRY(ranks::fork_process(fmt::format("rank {}", rank)));
  if (other.pid != 0) return other;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a rank dies with its coordinator
  others.clear();
  std::exit(run_rank(options, pattern, Team(std::move(other.stream), rank, options.ranks)));
}

Outcome<Processes> start_all(const Options& options, const Pattern& pattern) {
  Processes processes;
  processes.reserve(static_cast<size_t>(options.ranks));
  for (int rank = 0; rank < options.ranks; ++rank) {
    processes.push_back(BL_TRY(start_rank(options, pattern, rank, processes)));
  }
  return processes;
}

Outcome<std::vector<ranks::Joined>> gather(const Options& options) {
  const auto check = [&options](const ranks::Hello& hello) -> Outcome<void> {
    if (hello.about == terms_of(options)) return {};
    return fail(fmt::format("rank {} was started with other options: {}, rank 0 with {}",
                            hello.rank, hello.about, terms_of(options)));
  };
  ranks::Admission admission({.command = "perf",
                              .rendezvous = options.rendezvous,
                              .ranks = options.ranks,
                              .timeout_seconds = options.timeout_seconds,
                              .check = check},
                             BL_TRY(ranks::RendezvousListener::open(options.rendezvous)));
  const tools::Progress progress("waiting for the other ranks");
  return admission.gather();
}

Outcome<Processes> start_first(const Options& options, const Pattern& pattern) {
  Processes processes;
  for (ranks::Joined& joined : BL_TRY(gather(options))) {
    processes.push_back({.stream = std::move(joined.stream)});
  }
  processes[0] = BL_TRY(start_rank(options, pattern, 0, processes));
  return processes;
}

int run_remote_rank(const Options& options, const Pattern& pattern) {
  const ranks::Hello hello = {.rank = static_cast<size_t>(options.rank),
                              .about = terms_of(options)};
  const auto join = [&]() -> Outcome<ranks::LineStream> {
    const tools::Progress progress("waiting for rank 0");
    return ranks::join("perf", options.rendezvous, hello, options.timeout_seconds);
  };
  Outcome<ranks::LineStream> stream = join();
  if (!stream) return tools::print_error(stream.error());
  return run_rank(options, pattern, Team(*std::move(stream), options.rank, options.ranks));
}

}  // namespace

int run(Options options) {
  if (options.list) options.pattern = "latency";
  if (options.list) options.ranks = 1;
  const Pattern* const pattern = find_pattern(options.pattern);
  if (pattern == nullptr) {
    std::vector<std::string_view> known;
    for (const Pattern& one : all_patterns()) known.emplace_back(one.name);
    return tools::print_error(tools::unknown_word(options.pattern, "pattern", known),
                              tools::kUsage);
  }
  if (!options.json.empty() && options.rank <= 0) {  // the first rank writes it, at the end
    const Outcome<void> can = tools::check_output(options.json);
    if (!can) return tools::print_error(can.error(), tools::kUsage);
  }
  if (options.sizes.empty()) options.sizes = *parse_sizes(pattern->sizes);
  if (options.seed == 0) options.seed = static_cast<std::uint64_t>(now_ns()) % 1'000'000'000 + 1;
  if (options.rank > 0) return run_remote_rank(options, *pattern);
  Outcome<Processes> processes =
      options.rank == 0 ? start_first(options, *pattern) : start_all(options, *pattern);
  if (!processes) return tools::print_error(processes.error());
  Coordinator coordinator(options, *pattern, *std::move(processes));
  return coordinator.run();
}

}  // namespace beeline::perf
