// SPDX-License-Identifier: Apache-2.0
#include "bench/footprint/by_rails.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "common/base/fd.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"
#include "tests/support/must.h"

namespace beeline::bench {
namespace {

struct Row {
  std::size_t rails;
  double goal_kib;  // 0: none
};
constexpr Row kRows[] = {{1, 20}, {2, 0}, {4, 0}, {8, 32}};

void set_rails(std::size_t rails) {
  const std::string text = std::to_string(rails);
  ::setenv("NULLVERBS_DEVICES", text.c_str(), 1);
  ::setenv("BEELINE_RAILS", text.c_str(), 1);
}

// Does not return.
void measure_as_child(std::size_t rails, const std::function<Measured()>& measure, int to) {
  try {
    set_rails(rails);
    const Measured measured = measure();
    ::_exit(::write(to, &measured, sizeof measured) == sizeof measured ? 0 : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "footprint: with %zu rails: %s\n", rails, error.what());
    ::_exit(1);
  }
}

Measured measure_apart(std::size_t rails, const std::function<Measured()>& measure) {
  int ends[2] = {-1, -1};
  BL_MUST_OK(::pipe(ends));
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  std::fflush(stdout);
  const pid_t child = ::fork();
  BL_MUST(child >= 0);
  if (child == 0) measure_as_child(rails, measure, to.get());
  to.reset();
  Measured measured;
  const bool is_complete = ::read(from.get(), &measured, sizeof measured) == sizeof measured;
  int status = 0;
  BL_MUST(::waitpid(child, &status, 0) == child);
  BL_MUST(is_complete && status == 0);
  return measured;
}

double in_kib(std::size_t bytes) noexcept { return static_cast<double>(bytes) / 1024; }

double known_kib(std::size_t structure, const CommPlan& plan) noexcept {
  return in_kib(structure + plan.extra_bytes + plan.memory_bytes);
}

std::string judged(double kib, double goal_kib) {
  if (goal_kib == 0) return fmt::format("{:.2f}", kib);
  return fmt::format("{:.2f} {}", kib, kib <= goal_kib ? "met" : "missed");
}

}  // namespace

void print_by_rails(const std::function<Measured()>& measure) {
  fmt::print(
      "Memory of the plugin for a comm by its rails, in KiB, after messages that were split\n\n"
      "                                          of it, at most\n"
      "  rails   in flight   goal   measured     sender  receiver\n");
  for (const Row& row : kRows) {
    const Measured measured = measure_apart(row.rails, measure);
    fmt::print("  {:>5}{:>12}   {:<7}{:<13}{:>6.2f}{:>10.2f}\n", row.rails, measured.in_flight,
               row.goal_kib == 0 ? "-" : fmt::format("{:.0f}", row.goal_kib),
               judged(measured.kib, row.goal_kib),
               known_kib(sizeof(SendComm), SendComm::plan(row.rails)),
               known_kib(sizeof(RecvComm), RecvComm::plan(row.rails)));
  }
  fmt::print(
      "\n  A comm is one end of a connection; \"measured\" is the mean of sender and receiver. The "
      "last two\n  columns are the comm's structure, what it needs by path, and its control "
      "block.\n");
}

}  // namespace beeline::bench
