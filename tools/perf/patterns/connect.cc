// SPDX-License-Identifier: Apache-2.0
//
// The pattern connect: the time that it takes to set up comms, to send a first message, and to
// close them.
#include <fmt/format.h>

#include "tools/perf/lanes.h"
#include "tools/perf/pattern.h"

namespace beeline::perf {
namespace {

double us_each(std::int64_t ns, size_t count) {
  return count == 0 ? 0 : static_cast<double>(ns) / 1e3 / static_cast<double>(count);
}

Outcome<Row> connect_once(Rank& rank, size_t size, std::uint64_t round) {
  const auto plans = plan_pairs(rank.count(), rank.options().comms, Ways::kOne);
  BL_TRY(rank.team().barrier("start of connecting"));
  Comms comms = BL_TRY(open_comms(rank, plans, {1, 1}));
  const size_t count = comms.sends.size() + comms.recvs.size();
  Row row(size);
  if (!comms.recvs.empty()) row.set("listen_us", us_each(comms.listen_ns, count));
  if (count > 0) row.set("time_us", us_each(comms.connect_ns, count));

  Lanes lanes = BL_TRY(Lanes::open(rank, comms, size));
  BL_TRY(lanes.prepare(round));
  BL_TRY(rank.team().barrier("first messages"));
  const Cost first = BL_TRY(lanes.stream(round, 1));
  if (!comms.recvs.empty()) row.set("message_us", us_each(first.wall_ns, count));
  row.set_wrong(BL_TRY(lanes.check(round, 1)));
  BL_TRY(lanes.close());

  const std::int64_t start = now_ns();
  BL_TRY(close_comms(rank, std::move(comms)));
  if (count > 0) row.set("close_us", us_each(now_ns() - start, count));
  return row;
}

// Whether to measure again after `done` times: --iters or --seconds decides; otherwise five times.
Outcome<bool> goes_on(Rank& rank, std::int64_t start, std::uint64_t done) {
  const Options& options = rank.options();
  if (options.iterations > 0) return done < options.iterations;
  const double elapsed = static_cast<double>(now_ns() - start) / 1e9;
  const bool mine = options.seconds ? done == 0 || elapsed < *options.seconds : done < 5;
  return BL_TRY(rank.team().broadcast_from_rank_0("choice of iterations", mine ? 1 : 0)) != 0;
}

}  // namespace

Outcome<bool> run_connect(Rank& rank) {
  for (const size_t size : rank.options().sizes) {
    const std::int64_t start = now_ns();
    for (std::uint64_t i = 0; BL_TRY(goes_on(rank, start, i)); ++i) {
      rank.set_phase(fmt::format("{} comms, time {}", rank.options().comms, i + 1));
      rank.report_row(BL_TRY(connect_once(rank, size, i)));
    }
  }
  return true;
}

}  // namespace beeline::perf
