// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler achieves on rails of unequal rates that all claim the same speed, in a
// simulation, with the equal split of net_ib beside it. `transfer_scheduler_test -s "[figures]"`
// prints the figures.
#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tests/plugin/unit/transfer_scheduler_sim.h"
#include "tests/support/catch.h"

namespace beeline::test {
namespace {

constexpr std::int64_t kRunNs = 2 * kNsPerSec;

std::string name_of(const std::vector<double>& rates) {
  std::string name;
  for (const double rate : rates) name += fmt::format("{}{:.0f}", name.empty() ? "" : "+", rate);
  return name;
}

struct Figures {
  double part;                // of the sum of all rates, after the first 100 ms
  double writes_per_message;  // RDMA WRITEs, each of which has a notice
};

Figures figures_of(SplitRule rule, const Traffic& traffic, const std::vector<double>& rates,
                   std::int64_t run_ns = kRunNs) {
  Sim sim(rule, traffic, paths_of(rates), 1);
  sim.run_until(run_ns);
  const std::size_t intervals = static_cast<std::size_t>(run_ns / Sim::kIntervalNs);
  return {
      .part = sim.mb_per_s(1, intervals - 1) / sim.ideal_mb_per_s(),
      .writes_per_message = static_cast<double>(sim.writes()) / static_cast<double>(sim.messages()),
  };
}

// Returns the part of the sum that the scheduler reaches.
double print_both(const Traffic& traffic, const std::vector<double>& rates,
                  std::int64_t run_ns = kRunNs) {
  const Figures ours = figures_of(SplitRule::kScheduler, traffic, rates, run_ns);
  const Figures equal = figures_of(SplitRule::kEqual, traffic, rates, run_ns);
  fmt::print("{:<34} {:>4} KiB x {}   scheduler {:.3f}, {:4.1f} writes   equal split {:.3f}\n",
             name_of(rates), traffic.message_bytes >> 10, traffic.in_flight, ours.part,
             ours.writes_per_message, equal.part);
  return ours.part;
}

}  // namespace

TEST_CASE("traffic: unequal rails carry the sum of their rates", "[figures]") {
  const std::vector<double> rates =
      GENERATE(std::vector<double>{400, 400}, std::vector<double>{400, 100},
               std::vector<double>{400, 100, 100, 50}, std::vector<double>(8, 200),
               std::vector<double>{8, 150, 30, 60, 8, 20, 100, 40}, std::vector<double>{400, 8});
  CHECK(print_both(kLarge, rates) >= 0.95);
  CHECK(print_both(kUsual, rates) >= 0.90);
}

// Rails of 100 and 400 Gb/s. The data of 512 KiB x 4 is on its way for 10 us, two latencies.
TEST_CASE("traffic: fast unequal rails carry the sum of their rates", "[figures]") {
  const std::vector<double> rates = GENERATE(std::vector<double>{50'000, 12'500},
                                             std::vector<double>{50'000, 50'000, 50'000, 12'500});
  Traffic large = kLarge;
  Traffic usual = kUsual;
  large.most_poll_ns = usual.most_poll_ns = kNsPerUs;
  CHECK(print_both(large, rates, 300 * kNsPerMs) >= 0.95);
  CHECK(print_both(usual, rates, 300 * kNsPerMs) >= 0.90);
}

TEST_CASE("traffic: a thread that polls rarely costs little", "[figures]") {
  const std::vector<double> rates =
      GENERATE(std::vector<double>{400, 400}, std::vector<double>{400, 100, 100, 50});
  Traffic large = kLarge;
  Traffic usual = kUsual;
  large.most_poll_ns = usual.most_poll_ns = kNsPerMs;
  CHECK(print_both(large, rates) >= 0.95);
  CHECK(print_both(usual, rates) >= 0.90);
}

TEST_CASE("traffic: small messages use all rails", "[figures]") {
  const Traffic small{.message_bytes = 100'000, .in_flight = 32};
  const std::vector<double> rates =
      GENERATE(std::vector<double>{400, 400}, std::vector<double>{400, 100, 100, 50});
  const double part = figures_of(SplitRule::kScheduler, small, rates).part;
  fmt::print("{:<34} 100 kB x 32     scheduler {:.3f}\n", name_of(rates), part);
  CHECK(part >= 0.95);
}

TEST_CASE("traffic: a rail that slows down and recovers is noticed", "[figures]") {
  const Traffic traffic = GENERATE(kLarge, kUsual);
  Sim sim(SplitRule::kScheduler, traffic, paths_of({400, 400}), 1);
  sim.run_until(1 * kNsPerSec);
  sim.set_rate(1, 100);
  sim.run_until(2 * kNsPerSec);
  const double slow_sum = sim.ideal_mb_per_s();
  sim.set_rate(1, 400);
  sim.run_until(4 * kNsPerSec);
  const double sum = sim.ideal_mb_per_s();
  fmt::print("MB/s of both rails in every 100 ms, {} KiB x {}:", traffic.message_bytes >> 10,
             traffic.in_flight);
  for (const Sim::Interval& interval : sim.intervals())
    fmt::print(" {:.0f}+{:.0f}", interval[0], interval[1]);
  fmt::print("\n");
  // Slowed down after 1 s: 200 ms later.
  for (std::size_t i = 12; i < 20; ++i) CHECK(sim.mb_per_s(i, 1) >= 0.95 * slow_sum);
  // Restored after 2 s: 1 s later.
  for (std::size_t i = 30; i < 40; ++i) CHECK(sim.mb_per_s(i, 1) >= 0.95 * sum);
}

TEST_CASE("traffic: a rail that stood still for a second comes back") {
  const Traffic traffic = GENERATE(kLarge, kUsual);
  Sim sim(SplitRule::kScheduler, traffic, paths_of({400, 400}), 1);
  sim.run_until(1 * kNsPerSec);
  sim.set_rate(1, 0);
  sim.run_until(2 * kNsPerSec);
  sim.set_rate(1, 400);
  sim.run_until(4 * kNsPerSec);
  for (std::size_t i = 30; i < 40; ++i) CHECK(sim.mb_per_s(i, 1) >= 0.95 * sim.ideal_mb_per_s());
}

}  // namespace beeline::test
