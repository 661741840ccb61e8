// SPDX-License-Identifier: Apache-2.0
//
// Measures the memory of one comm: the growth of this process from 100 comms to 1,100, each of
// which has had all possible requests in flight. The memory of nullverbs is counted separately, and
// all comms use the same buffers. File descriptors are limited to 1,024, as on many systems.
//
//   footprint PLUGIN NULLVERBS [ABI [--check]]
//
// With --check, the program fails if the goal is missed.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/footprint/memory_map.h"
#include "common/base/clock.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"
#include "plugin/wire/limits.h"
#include "tests/support/must.h"
#include "tests/support/one_thread/setup.h"
#include "tests/support/one_thread/traffic.h"

namespace beeline::bench {
namespace {

constexpr std::size_t kFewComms = 100;
constexpr std::size_t kManyComms = 1100;
constexpr std::size_t kGroups = wire::kMaxLines / Traffic::kInFlight;  // all that may be in flight
constexpr double kGoalKib = 48;
constexpr rlim_t kDescriptors = 1024;

struct Reading {
  double all_kib;
  std::map<std::string, double> kib;
  std::size_t descriptors;
  std::int64_t time_ns;
};

std::size_t count_descriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(open), end(open))) - 1;  // without this one
}

// A comm is one end of a connection, so each pair has two.
class Crowd {
 public:
  Crowd(nccl::Net& net, const NullverbsReport& report)
      : net_(net),
        nullverbs_{.name = "nullverbs",
                   .begin = reinterpret_cast<std::uintptr_t>(report.memory),
                   .end = reinterpret_cast<std::uintptr_t>(report.memory) + report.memory_bytes},
        places_(kManyComms / 2 * sizeof(Traffic), std::byte{1}) {}
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      traffic(i)->~Traffic();
      close(net_, pairs_[i]);
    }
  }

  Reading grow_to(std::size_t comms) {
    const std::int64_t start = now_ns();
    while (2 * pairs_.size() < comms) {
      pairs_.push_back(connect(net_));
      (new (traffic(pairs_.size() - 1)) Traffic(net_, pairs_.back(), buffers_))->fill(kGroups);
    }
    const std::int64_t time = now_ns() - start;
    return {proportional_set_kib(), read_memory(nullverbs_), count_descriptors(), time};
  }

 private:
  Traffic* traffic(std::size_t i) { return reinterpret_cast<Traffic*>(places_.data()) + i; }

  nccl::Net& net_;
  const NamedRange nullverbs_;
  const Buffers buffers_{64};
  std::vector<std::byte>
      places_;  // allocated in advance, so that the memory of this program does not count
  std::vector<CommPair> pairs_ = [] {
    std::vector<CommPair> pairs;
    pairs.assign(kManyComms / 2, CommPair{this_is_not_one(), nullptr});
    pairs.clear();
    return pairs;
  }();

  static void* this_is_not_one() { return reinterpret_cast<void*>(1); }
};

// The known sizes of the objects of each comm. The difference to the measured rows above is
// overhead.
void print_parts() {
  const auto line = [](const char* what, double sender, double receiver) {
    fmt::print("    {:<44}{:>10.2f} KiB a sender, {:.2f} a receiver\n", what, sender / 1024,
               receiver / 1024);
  };
  line("of the heap: the comm's own structure", sizeof(SendComm), sizeof(RecvComm));
  line("of the maps: its control block, before rounding",
       static_cast<double>(SendComm::plan(1).memory_bytes),
       static_cast<double>(RecvComm::plan(1).memory_bytes));
}

// Returns the memory that the plugin needs for a comm.
double print(const Reading& few, const Reading& many) {
  constexpr double kMore = kManyComms - kFewComms;
  const auto each = [&](double before, double after) { return (after - before) / kMore; };
  fmt::print("From {} to {} comms (a connection has two), each with {} x {} requests in flight\n\n",
             kFewComms, kManyComms, kGroups, Traffic::kInFlight);
  double theirs = 0;
  for (const auto& [kind, kib] : many.kib) {
    const auto before = few.kib.find(kind);
    const double grown = each(before != few.kib.end() ? before->second : 0, kib);
    if (kind == "nullverbs") theirs = grown;
    if (grown >= 0.01 || grown <= -0.01) {
      fmt::print("  {:<46}{:>10.2f} KiB a comm\n", kind, grown);
    }
  }
  const double all = each(few.all_kib, many.all_kib);
  fmt::print("  {:<46}{:>10.2f} KiB a comm\n", "all", all);
  fmt::print("  {:<46}{:>10.2f} KiB a comm; the goal is at most {:.0f}: {}\n",
             "all but nullverbs, the plugin's own", all - theirs, kGoalKib,
             all - theirs <= kGoalKib ? "met" : "missed");
  print_parts();
  fmt::print("  {:<46}{:>10} to {}, of {}\n", "descriptors open", few.descriptors, many.descriptors,
             kDescriptors);
  fmt::print("  {:<46}{:>10.2f} ms a comm\n", "time to connect and to fill",
             static_cast<double>(many.time_ns) / 1e6 / kMore);
  return all - theirs;
}

double run(const std::string& plugin, const std::string& verbs, int abi) {
  const rlimit limit = {kDescriptors, kDescriptors};
  BL_MUST_OK(::setrlimit(RLIMIT_NOFILE, &limit));
  nccl::Net net = load(plugin, verbs, abi);
  Crowd crowd(net, report_of(verbs));
  const Reading few = crowd.grow_to(kFewComms);
  const Reading many = crowd.grow_to(kManyComms);
  return print(few, many);
}

}  // namespace
}  // namespace beeline::bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: footprint PLUGIN NULLVERBS [ABI [--check]]\n", stderr);
    return 2;
  }
  try {
    const double kib = beeline::bench::run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 0);
    const bool checks = argc > 4 && std::string_view(argv[4]) == "--check";
    return checks && kib > beeline::bench::kGoalKib ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "footprint: %s\n", error.what());
    return 1;
  }
}
