// SPDX-License-Identifier: Apache-2.0
#include "bench/bench_report.h"

#include <fmt/format.h>

#include <vector>

#include "bench/support/ranks.h"

namespace beeline::bench {
namespace {

void print_time(const char* what, Samples& ns) {
  fmt::print("  {:<46}{:>9.0f} ns{:>10.0f} ns\n", what, ns.median(), ns.percentile(0.99));
}

void print_speed(const char* what, Samples& ns) {
  fmt::print("  {:<46}{:>7.2f} GB/s\n", what, gb_per_s(kBlockBytes, ns.median()));
}

}  // namespace

void print_report(Times& times) {
  const std::vector<int>& cpus = processors();
  if (cpus.size() < 2) {
    fmt::print("softnic between two processes that share a processor: times are the scheduler's\n");
  } else {
    fmt::print("softnic between two processes, on processors {} and {}\n", cpus[0], cpus[1]);
  }
  fmt::print("\n  {:<46}{:>12}{:>13}\n", "8 bytes into the other's heap, one way", "median", "p99");
  print_time("RDMA WRITE (inline), half a round trip", times.ping);
  print_time("a cache line through shared memory", times.line);
  print_time("the kernel's copy alone (pwrite)", times.kernel_word);
  fmt::print("\n  {:<46}{:>12}\n", "1 MiB blocks, 16 MiB from heap to heap", "median");
  print_speed("RDMA WRITE, 4 under way", times.block);
  print_speed("memcpy inside one process", times.copy);
  print_speed("the kernel's copy alone (process_vm_writev)", times.kernel_block);
  fmt::print("\n  {:<46}{:>7.2f} million a second\n", "64-byte RDMA WRITEs, one queue pair",
             1e3 / times.small.median());
  const double slower = times.ping.median() / times.line.median();
  const double share = times.copy.median() / times.block.median();
  fmt::print("\n  latency is {:.1f} x a cache-line pass; the goal is at most 25: {}\n", slower,
             slower <= 25 ? "met" : "missed");
  fmt::print("  bandwidth is {:.2f} x memcpy; the goal is at least 0.2: {}\n", share,
             share >= 0.2 ? "met" : "missed");
}

}  // namespace beeline::bench
