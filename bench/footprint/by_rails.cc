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
void measure_as_child(std::size_t rails, const std::function<double()>& measure, int to) {
  try {
    set_rails(rails);
    const double kib = measure();
    ::_exit(::write(to, &kib, sizeof kib) == sizeof kib ? 0 : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "footprint: with %zu rails: %s\n", rails, error.what());
    ::_exit(1);
  }
}

double measure_apart(std::size_t rails, const std::function<double()>& measure) {
  int ends[2] = {-1, -1};
  BL_MUST_OK(::pipe(ends));
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  std::fflush(stdout);
  const pid_t child = ::fork();
  BL_MUST(child >= 0);
  if (child == 0) measure_as_child(rails, measure, to.get());
  to.reset();
  double kib = 0;
  const bool is_complete = ::read(from.get(), &kib, sizeof kib) == sizeof kib;
  int status = 0;
  BL_MUST(::waitpid(child, &status, 0) == child);
  BL_MUST(is_complete && status == 0);
  return kib;
}

double in_kib(std::size_t bytes) noexcept { return static_cast<double>(bytes) / 1024; }

std::string judged(double kib, double goal_kib) {
  if (goal_kib == 0) return fmt::format("{:.2f}", kib);
  return fmt::format("{:.2f} {}", kib, kib <= goal_kib ? "met" : "missed");
}

}  // namespace

void print_by_rails(const std::function<double()>& measure) {
  fmt::print(
      "Memory of the plugin for a comm by its rails, in KiB\n\n"
      "                                structure          control block\n"
      "  rails   goal   measured       sender  receiver   sender  receiver\n");
  for (const Row& row : kRows) {
    const double kib = measure_apart(row.rails, measure);
    fmt::print("  {:>5}   {:<7}{:<15}{:>6.2f}{:>10.2f}{:>9.2f}{:>10.2f}\n", row.rails,
               row.goal_kib == 0 ? "-" : fmt::format("{:.0f}", row.goal_kib),
               judged(kib, row.goal_kib), in_kib(sizeof(SendComm)), in_kib(sizeof(RecvComm)),
               in_kib(SendComm::plan(row.rails).memory_bytes),
               in_kib(RecvComm::plan(row.rails).memory_bytes));
  }
  fmt::print(
      "\n  A comm is one end of a connection; the mean of sender and receiver. Small messages use "
      "about\n  8 KiB of a control block, split ones use all of it in time: \"measured\" does not "
      "include the rest.\n");
}

}  // namespace beeline::bench
