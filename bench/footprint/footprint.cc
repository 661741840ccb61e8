// SPDX-License-Identifier: Apache-2.0
//
// Measures the memory of one comm: the growth of this process from 100 comms to 1,100, each of
// which has had as many requests in flight as it accepts. The memory of nullverbs is counted
// separately, and all comms use the same buffers. File descriptors are limited to 1,024, as on many
// systems.
//
//   footprint PLUGIN NULLVERBS [ABI [--check | --by-rails]]
//
// With --check, the program fails if a tenth more is used than the goal allows. With --by-rails, it
// prints a table for comms with 1, 2, 4 and 8 rails instead, with messages that are split.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/footprint/by_rails.h"
#include "bench/footprint/memory_map.h"
#include "common/base/clock.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"
#include "tests/support/must.h"
#include "tests/support/one_thread/setup.h"
#include "tests/support/one_thread/traffic.h"

namespace beeline::bench {
namespace {

constexpr std::size_t kFewComms = 100;
constexpr std::size_t kManyComms = 1100;
constexpr std::size_t kSmallBytes = 64;
constexpr std::size_t kSplitBytes = std::size_t{512} << 10;
constexpr double kGoalKib = 20;  // with one rail
constexpr double kMostKib = 22;  // for --check, since builds differ a little
constexpr rlim_t kDescriptors = 1024;
constexpr int kFills = 2;  // the rings of receives are longer than what is in flight at once

struct Reading {
  double all_kib;
  std::map<std::string, double> kib;
  std::size_t descriptors;
  std::int64_t time_ns;
  std::size_t in_flight;  // buffers, on the last connection
};

std::size_t count_descriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(open), end(open))) - 1;  // without this one
}

// A comm is one end of a connection, so each pair has two.
class Crowd {
 public:
  Crowd(nccl::Net& net, const NullverbsReport& report, std::size_t message_bytes)
      : net_(net),
        buffers_(message_bytes),
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
    std::size_t in_flight = 0;
    while (2 * pairs_.size() < comms) {
      pairs_.push_back(connect(net_));
      Traffic& traffic_of_pair =
          *new (traffic(pairs_.size() - 1)) Traffic(net_, pairs_.back(), buffers_);
      for (int i = 0; i < kFills; ++i) in_flight = traffic_of_pair.fill();
    }
    const std::int64_t time = now_ns() - start;
    return {resident_set_kib(), read_memory(nullverbs_), count_descriptors(), time, in_flight};
  }

 private:
  Traffic* traffic(std::size_t i) { return reinterpret_cast<Traffic*>(places_.data()) + i; }

  nccl::Net& net_;
  const Buffers buffers_;
  const NamedRange nullverbs_;
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

struct Growth {
  Reading few;
  Reading many;

  double each(double before, double after) const noexcept {
    return (after - before) / (kManyComms - kFewComms);
  }
  double of_kind(const std::string& kind) const {
    const auto before = few.kib.find(kind);
    return each(before != few.kib.end() ? before->second : 0, many.kib.at(kind));
  }
  double all() const noexcept { return each(few.all_kib, many.all_kib); }
  // The memory that the plugin needs for a comm.
  double of_plugin() const { return all() - of_kind("nullverbs"); }
};

void print(const Growth& growth) {
  fmt::print("From {} to {} comms (a connection has two), each with {} requests in flight\n\n",
             kFewComms, kManyComms, growth.many.in_flight);
  for (const auto& [kind, kib] : growth.many.kib) {
    const double grown = growth.of_kind(kind);
    if (grown >= 0.01 || grown <= -0.01) {
      fmt::print("  {:<46}{:>10.2f} KiB a comm\n", kind, grown);
    }
  }
  const double own = growth.of_plugin();
  fmt::print("  {:<46}{:>10.2f} KiB a comm\n", "all", growth.all());
  fmt::print("  {:<46}{:>10.2f} KiB a comm; the goal is at most {:.0f}: {}\n",
             "all but nullverbs, the plugin's own", own, kGoalKib,
             own <= kGoalKib ? "met" : "missed");
  print_parts();
  fmt::print("  {:<46}{:>10} to {}, of {}\n", "descriptors open", growth.few.descriptors,
             growth.many.descriptors, kDescriptors);
  fmt::print("  {:<46}{:>10.2f} ms a comm\n", "time to connect and to fill",
             growth.each(0, static_cast<double>(growth.many.time_ns) / 1e6));
}

Growth measure(const std::string& plugin, const std::string& verbs, int abi,
               std::size_t message_bytes) {
  const rlimit limit = {kDescriptors, kDescriptors};
  BL_MUST_OK(::setrlimit(RLIMIT_NOFILE, &limit));
  nccl::Net net = load(plugin, verbs, abi);
  Crowd crowd(net, report_of(verbs), message_bytes);
  Reading few = crowd.grow_to(kFewComms);
  Reading many = crowd.grow_to(kManyComms);
  return {std::move(few), std::move(many)};
}

// Returns the exit status.
int run(const std::string& plugin, const std::string& verbs, int abi, std::string_view option) {
  if (option == "--by-rails") {
    print_by_rails([&] {
      const Growth growth = measure(plugin, verbs, abi, kSplitBytes);
      return Measured{.kib = growth.of_plugin(), .in_flight = growth.many.in_flight};
    });
    return 0;
  }
  const Growth growth = measure(plugin, verbs, abi, kSmallBytes);
  print(growth);
  return option == "--check" && growth.of_plugin() > kMostKib ? 1 : 0;
}

}  // namespace
}  // namespace beeline::bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: footprint PLUGIN NULLVERBS [ABI [--check | --by-rails]]\n", stderr);
    return 2;
  }
  try {
    return beeline::bench::run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 0,
                               argc > 4 ? argv[4] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "footprint: %s\n", error.what());
    return 1;
  }
}
