// SPDX-License-Identifier: Apache-2.0
//
// The CPU time to analyze the topology of a machine with a thousand devices: the median of several
// rounds.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/topology/large_machine.h"
#include "topology/assignment.h"
#include "topology/render/json.h"
#include "topology/render/matrix.h"
#include "topology/render/svg.h"

namespace beeline::bench {
namespace {

using namespace beeline::topology;

constexpr int kRounds = 9;
constexpr double kGoalMs = 1000;

double thread_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// The result is destroyed after the time was taken.
template <class Make>
double median_ms(const Make& make) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const double start = thread_ms();
    const auto made = make();
    rounds.push_back(thread_ms() - start);
  }
  std::ranges::sort(rounds);
  return rounds[kRounds / 2];
}

double print_row(const char* what, double ms) {
  fmt::print("  {:<46}{:>9.1f} ms\n", what, ms);
  return ms;
}

Graph graph_of(const GraphParts& parts) {
  Outcome<Graph> graph = Graph::make(parts);
  if (graph) return *std::move(graph);
  fmt::print(stderr, "cannot make the machine: {}\n", graph.error().text);
  std::exit(EXIT_FAILURE);
}

void measure(const char* name, const GraphParts& parts) {
  const Graph graph = graph_of(parts);
  const Assignment assignment = assign(graph);
  fmt::print("{}: {} nodes, {} GPUs, {} NICs, {} of them without a GPU\n", name, graph.size(),
             graph.gpus().size(), graph.nics().size(), assignment.spares.size());
  const double total =
      print_row("the graph, from its nodes", median_ms([&] { return graph_of(parts); })) +
      print_row("the matrix of all devices, as text",
                median_ms([&] { return matrix_text(graph); })) +
      print_row("the assignment, with all that stands by",
                median_ms([&] { return assign(graph); }));
  print_row("together", total);
  fmt::print("  the goal is less than {:.0f} ms: {}\n", kGoalMs,
             total < kGoalMs ? "met" : "missed");
  print_row("besides: JSON", median_ms([&] { return to_json(graph, assignment); }));
  print_row("besides: the picture", median_ms([&] { return to_svg(graph, assignment); }));
  fmt::print("\n");
}

}  // namespace
}  // namespace beeline::bench

int main() {
  using namespace beeline::bench;
  measure("Four GPUs and four NICs below each switch", switched_machine());
  measure("All below one switch", tied_machine());
}
