// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/options_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/ranks/rendezvous_socket.h"

namespace beeline::perf {
namespace {

constexpr int kMostRanks = 1024;
constexpr int kMostComms = 4096;
constexpr int kDay = 86400;  // in seconds

// Neither comparison is true for NaN.
template <class Number>
Outcome<bool> expect(const char* option, Number value, Number least, Number most) {
  if (value >= least && value <= most) return true;
  return fail(fmt::format("{} {}: write {} to {}", option, value, least, most));
}

Outcome<bool> check_counts(const Options& options) {
  if (!options.list) BL_TRY(expect("--ranks", options.ranks, 2, kMostRanks));
  BL_TRY(expect("--depth", options.depth, 1, int{NCCL_NET_MAX_REQUESTS}));
  BL_TRY(expect("--rails", options.rails, 1, int{NCCL_NET_MAX_DEVS_PER_NIC_V12}));
  return expect("--comms", options.comms, 1, kMostComms);
}

Outcome<bool> check_times(const Options& options) {
  const double seconds = seconds_of(options);
  if (!(seconds > 0 && seconds <= kDay)) {
    return fail(fmt::format("--seconds {}: write a time above 0, up to a day ({})", seconds, kDay));
  }
  if (!(options.hold_seconds >= 0 && options.hold_seconds <= kDay)) {
    return fail(
        fmt::format("--hold {}: write 0, or a time up to a day ({})", options.hold_seconds, kDay));
  }
  return expect("--timeout", options.timeout_seconds, 1, kDay);
}

Outcome<bool> check_meeting(const Options& options) {
  const bool is_one = options.rank != kEveryRank;
  if (is_one) BL_TRY(expect("--rank", options.rank, 0, options.ranks - 1));
  if (is_one == options.rendezvous.empty()) {
    return fail(
        "--rank and --rendezvous go together: the number of this rank, and how it finds rank 0. "
        "Without --rank, start the ranks with srun, mpirun or torchrun");
  }
  return is_one ? ranks::check_rendezvous(options.rendezvous) : true;
}

Outcome<bool> check_warm_up(const Options& options) {
  if (!options.warm_up || (options.pattern != "soak" && options.pattern != "connect")) return true;
  return fail(fmt::format("-w with {}: it has no warm-up", options.pattern));
}

Outcome<bool> check_checking(const Options& options) {
  if (!options.check_every) return true;
  if (!options.check) return fail("--check-every and --no-check exclude each other");
  const bool can =
      options.pattern == "stream" || options.pattern == "rate" || options.pattern == "bidir";
  if (can) return true;
  return fail(fmt::format(
      "--check-every with {}: it is for stream, rate and bidir; the report of every pattern says "
      "what was compared",
      options.pattern));
}

}  // namespace

Outcome<bool> check_options(const Options& options) {
  if (!options.list && options.pattern.empty()) {
    return fail("name a pattern; beeline perf --help lists them");
  }
  BL_TRY(check_counts(options));
  BL_TRY(check_times(options));
  BL_TRY(check_checking(options));
  BL_TRY(check_warm_up(options));
  BL_TRY(check_meeting(options));
  for (const RankVariable& variable : options.variables) {
    if (variable.rank < options.ranks) continue;
    return fail(fmt::format("--env {}:{}={}: there is no rank {}; ranks are 0 to {}", variable.rank,
                            variable.name, variable.value, variable.rank, options.ranks - 1));
  }
  return true;
}

}  // namespace beeline::perf
