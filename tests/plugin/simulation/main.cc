// SPDX-License-Identifier: Apache-2.0
//
// Runs schedules: see README.md beside this file.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "tests/plugin/simulation/coverage.h"
#include "tests/plugin/simulation/runs.h"

namespace beeline::simulation {
namespace {

constexpr const char* kUsage =
    "usage: simulation [--from SEED] [--count N] [--seconds S] [--all] [--coverage]  many seeds\n"
    "       simulation --seed SEED [--trace] [--shrink]                              one\n"
    "       simulation --schedule FILE [--trace] [--shrink]                          a file's\n"
    "  --all      goes on after a violation\n"
    "  --coverage prints which states of paths and which pairs of faults were reached\n"
    "  --trace    prints the plugin's log, with simulated times\n"
    "  --shrink   prints the least schedule that still breaks a promise\n";

struct Arguments {
  std::uint64_t seed = 0;
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
  double seconds = 1e9;
  std::string file;
  bool is_traced = false;
  bool shrinks = false;
  bool goes_on = false;
  bool shows_coverage = false;
};

struct Sums {
  std::uint64_t runs = 0;
  std::uint64_t faults = 0;
  std::uint64_t messages = 0;
  std::uint64_t steps = 0;
  std::uint64_t ended = 0;
  std::uint64_t many = 0;        // runs with 256 comms
  std::uint64_t three_ends = 0;  // runs with three hosts
  std::uint64_t violations = 0;
  double hours = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

unsigned long long wide(std::uint64_t value) { return value; }

int run_many(const Arguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  Sums sums;
  for (std::uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    if (seconds_since(start) > arguments.seconds) break;
    const RunOptions options = draw_run(seed);
    const RunResult result = run(options);
    count_faults(options);
    ++sums.runs;
    sums.faults += options.faults.size();
    sums.messages += result.messages;
    sums.steps += result.steps;
    sums.ended += result.ended;
    sums.many += options.comms >= 256 ? 1 : 0;
    sums.three_ends += options.hosts > 2 ? 1 : 0;
    sums.hours += static_cast<double>(result.simulated_ns) / (3600.0 * kSec);
    if (result.violation.empty()) continue;
    ++sums.violations;
    std::printf("seed %llu: %s; %s\n", wide(seed), result.violation.c_str(), result.ending.c_str());
    std::fflush(stdout);
    if (!arguments.goes_on) break;
  }
  std::printf(
      "%llu runs (%llu with 256 comms, %llu with three hosts), %llu faults, %llu messages, %llu "
      "steps, %.1f simulated hours, %llu comms ended, %.1f s\n%llu violations\n",
      wide(sums.runs), wide(sums.many), wide(sums.three_ends), wide(sums.faults),
      wide(sums.messages), wide(sums.steps), sums.hours, wide(sums.ended), seconds_since(start),
      wide(sums.violations));
  if (arguments.shows_coverage) print_coverage();
  return sums.violations == 0 ? 0 : 1;
}

int run_one(RunOptions options, const Arguments& arguments) {
  if (arguments.shrinks && !run(options).violation.empty()) options = shrink(options);
  std::fputs(to_text(options).c_str(), stdout);
  const RunResult result = run(options, arguments.is_traced);
  std::printf("%llu messages, %llu packets, %llu steps, %u comms ended, hash %016llx\n",
              wide(result.messages), wide(result.packets), wide(result.steps), result.ended,
              wide(result.hash));
  std::printf("the longest time without a receive that was done: %.3f s\n",
              static_cast<double>(result.longest_gap_ns) / kSec);
  if (!result.ending.empty()) std::printf("%s\n", result.ending.c_str());
  std::printf("%s\n",
              result.violation.empty() ? "all promises were kept" : result.violation.c_str());
  return result.violation.empty() ? 0 : 1;
}

int run_file(const Arguments& arguments) {
  std::ifstream in(arguments.file);
  std::stringstream text;
  text << in.rdbuf();
  std::string why = "cannot be read";
  const std::optional<RunOptions> options = in ? parse_run(text.str(), why) : std::nullopt;
  if (options) return run_one(*options, arguments);
  std::fprintf(stderr, "%s: %s\n", arguments.file.c_str(), why.c_str());
  return 2;
}

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    bool* const flag = option == "--all"        ? &arguments.goes_on
                       : option == "--coverage" ? &arguments.shows_coverage
                       : option == "--trace"    ? &arguments.is_traced
                       : option == "--shrink"   ? &arguments.shrinks
                                                : nullptr;
    if (flag != nullptr) {
      *flag = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* const value = argv[++i];
    if (option == "--seed") {
      arguments.seed = std::strtoull(value, nullptr, 10);
    } else if (option == "--from") {
      arguments.first = std::strtoull(value, nullptr, 10);
    } else if (option == "--count") {
      arguments.count = std::strtoull(value, nullptr, 10);
    } else if (option == "--seconds") {
      arguments.seconds = std::strtod(value, nullptr);
    } else if (option == "--schedule") {
      arguments.file = value;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace beeline::simulation

int main(int argc, char** argv) {
  using namespace beeline::simulation;
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (!arguments.file.empty()) return run_file(arguments);
  return arguments.seed != 0 ? run_one(draw_run(arguments.seed), arguments) : run_many(arguments);
}
