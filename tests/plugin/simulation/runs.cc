// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulation/runs.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"

namespace beeline::simulation {
namespace {

std::string first_ending;
std::uint64_t moves = 0;

void print_line(int level, unsigned long, const char*, int, const char* format, ...) {
  std::printf("%10.4f %s ", static_cast<double>(now_ns()) / kSec - 1000,
              level == static_cast<int>(LogLevel::kWarn) ? "WARN" : "INFO");
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::putchar('\n');
}

void keep_ending(int, unsigned long, const char*, int, const char* format, ...) {
  char text[kLogLineBytes + 64];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::string_view line(text);
  const std::size_t at = line.find(": cannot ");
  const bool is_ending = at != std::string_view::npos && line.find(" is out of use") > line.size();
  if (line.find(" went back from ") != std::string_view::npos) ++moves;
  if (first_ending.empty() && is_ending) first_ending = line.substr(at + 2);
}

bool fails(const RunOptions& options) { return !run(options).violation.empty(); }

}  // namespace

RunResult run(const RunOptions& options, bool log) {
  first_ending.clear();
  moves = 0;
  set_log_sink(log ? print_line : keep_ending);
  RunResult result;
  try {
    World world(options);
    result = world.run();
  } catch (const std::exception& error) {
    result.violation = std::string("the run cannot go on: ") + error.what();
  }
  set_log_sink(nullptr);
  result.ending = std::exchange(first_ending, {});
  result.moves = moves;
  return result;
}

RunResult run_text(const std::string& text) {
  std::string why;
  const std::optional<RunOptions> options = parse_run(text, why);
  if (!options) throw std::runtime_error(why);
  return run(*options);
}

RunOptions shrink(RunOptions options) {
  const auto try_it = [&options](const RunOptions& smaller) {
    if (!fails(smaller)) return false;
    options = smaller;
    return true;
  };
  for (std::size_t part = options.faults.size(); part >= 1; part /= 2) {
    for (std::size_t at = 0; at < options.faults.size();) {
      RunOptions smaller = options;
      const auto from = smaller.faults.begin() + static_cast<std::ptrdiff_t>(at);
      const auto left = static_cast<std::ptrdiff_t>(smaller.faults.size() - at);
      smaller.faults.erase(from, from + std::min(left, static_cast<std::ptrdiff_t>(part)));
      if (!try_it(smaller)) at += part;
    }
  }
  for (std::size_t i = 0; i < options.faults.size(); ++i) {
    for (bool is_smaller = true; is_smaller && options.faults[i].for_ns > 2 * kMs;) {
      RunOptions smaller = options;
      smaller.faults[i].for_ns /= 2;
      is_smaller = try_it(smaller);
    }
  }
  // Fewer comms have other numbers, and so other traffic.
  for (bool is_smaller = options.comms > 1; is_smaller && options.comms > 1;) {
    RunOptions smaller = options;
    --smaller.comms;
    is_smaller = try_it(smaller);
  }
  const auto halve = [&](std::uint32_t RunOptions::*value) {
    for (bool is_smaller = true; is_smaller && options.*value > 1;) {
      RunOptions smaller = options;
      smaller.*value /= 2;
      is_smaller = try_it(smaller);
    }
  };
  halve(&RunOptions::most_bytes);
  halve(&RunOptions::groups_at_once);
  return options;
}

}  // namespace beeline::simulation
