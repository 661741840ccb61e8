// SPDX-License-Identifier: Apache-2.0
//
// Random histories of the rates of 2 to 8 rails, all of which claim the same speed. Rates are
// between 8 and 800 MB/s, and change every 2 to 2.4 s. A few histories in every run; the long test
// has ten thousand. BL_HISTORIES says how many.
//
// What must hold, for 4 MiB x 8 and 512 KiB x 4 in flight:
//   - Every rail completes something at least every kMostGapNs. The extreme is a rail whose rate
//     falls from 800 to 8 MB/s: what it held takes 0.2 s, and then it is probed every quarter of a
//     second, because a 64 KiB chunk takes 8 ms there.
//   - Over any second that begins 1 s after a change or later, the rails carry at least kLeastPart
//     of the sum of their rates.
//   - Nothing oscillates: from then on, the part of the sum that a rail carries in 100 ms differs
//     by less than kMostSwing from the part in the next 100 ms.
// All of this holds with chunks of at least 16 KiB, as in plugin/wire/chunks.h. With 64 KiB, 39 of
// 1000 histories carry less than kLeastPart, at worst 0.86 of the sum, and 8 swing by more than
// kMostSwing, at most 0.07. A chunk then takes longer on the slowest rails than all that
// is in flight on the others, so that those rails carry nothing but probes. The price of smaller
// chunks is more writes where 512 KiB go over very unequal rails: see the figures of
// transfer_scheduler_traffic_test.cc.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "common/base/clock.h"
#include "tests/plugin/unit/transfer_scheduler_sim.h"
#include "tests/support/catch.h"

namespace beeline::test {
namespace {

constexpr std::int64_t kMostGapNs = 600 * kNsPerMs;
constexpr double kLeastPart = 0.9;
constexpr double kMostSwing = 0.05;

constexpr int kEpochs = 3;  // without a change
constexpr double kLeastRate = 8;
constexpr double kMostRate = 800;
constexpr std::size_t kSecond = kNsPerSec / Sim::kIntervalNs;  // in intervals

struct Worst {
  double part = 1;
  double swing = 0;
  std::int64_t gap_ns = 0;

  void include(const Worst& other) {
    part = std::min(part, other.part);
    swing = std::max(swing, other.swing);
    gap_ns = std::max(gap_ns, other.gap_ns);
  }
};

class History {
 public:
  explicit History(std::uint64_t seed)
      : random_(seed),
        sim_(SplitRule::kScheduler, below(2) == 0 ? kLarge : kUsual, paths_of(first_rates()),
             seed) {}

  Worst run() {
    Worst worst;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      if (epoch != 0) change();
      const std::size_t first = sim_.intervals().size();
      const std::size_t length = 2 * kSecond + below(5);
      sim_.run_until(sim_.now_ns() + static_cast<std::int64_t>(length) * Sim::kIntervalNs);
      worst.include(judge(first + kSecond, first + length));
    }
    for (std::size_t i = 0; i < paths_; ++i)
      worst.gap_ns = std::max(worst.gap_ns, sim_.longest_gap_ns(i));
    return worst;
  }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }
  // All magnitudes are equally frequent.
  double any_rate() {
    const double place = static_cast<double>(below(10'001)) / 10'000;
    return kLeastRate * std::pow(kMostRate / kLeastRate, place);
  }
  std::vector<double> first_rates() {
    paths_ = 2 + below(Scheduler::kMaxPaths - 1);
    std::vector<double> rates;
    for (std::size_t i = 0; i < paths_; ++i) rates.push_back(any_rate());
    return rates;
  }
  // One rail, or several.
  void change() {
    const std::size_t always = below(paths_);
    for (std::size_t i = 0; i < paths_; ++i)
      if (i == always || below(3) == 0) sim_.set_rate(i, any_rate());
  }
  // The rates have been the same for a second and more in these intervals.
  Worst judge(std::size_t begin, std::size_t end) const {
    const double sum = sim_.ideal_mb_per_s();
    Worst worst;
    for (std::size_t i = begin; i + kSecond <= end; ++i)
      worst.part = std::min(worst.part, sim_.mb_per_s(i, kSecond) / sum);
    for (std::size_t i = begin; i + 1 < end; ++i) {
      for (std::size_t path = 0; path < paths_; ++path) {
        const double step = sim_.intervals()[i + 1][path] - sim_.intervals()[i][path];
        worst.swing = std::max(worst.swing, std::abs(step) / sum);
      }
    }
    return worst;
  }

  std::mt19937_64 random_;
  std::size_t paths_ = 0;
  Sim sim_;
};

std::uint64_t wanted_histories() {
  const char* const wanted = std::getenv("BL_HISTORIES");
  return wanted == nullptr ? 25 : std::strtoull(wanted, nullptr, 10);
}

}  // namespace

TEST_CASE("histories: changing rails are used, none starves, and nothing oscillates",
          "[histories]") {
  Worst worst;
  const std::uint64_t count = wanted_histories();
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const Worst one = History(seed).run();
    worst.include(one);
    INFO("history " << seed << ": " << one.part << " of the sum, swing " << one.swing << ", gap "
                    << one.gap_ns << " ns");
    CHECK(one.part >= kLeastPart);
    CHECK(one.swing < kMostSwing);
    CHECK(one.gap_ns < kMostGapNs);
  }
  fmt::print(
      "{} histories: at worst {:.3f} of the sum, swing {:.3f}, {:.0f} ms without completion\n",
      count, worst.part, worst.swing, static_cast<double>(worst.gap_ns) / kNsPerMs);
}

}  // namespace beeline::test
