// SPDX-License-Identifier: Apache-2.0
//
// The pattern allreduce: a ring all-reduce over all ranks that adds floats, out of place. As in
// NCCL, each of the --comms channels has a share of the data and its own ring of comms.
#include <fmt/format.h>

#include "tools/perf/pace.h"
#include "tools/perf/pattern.h"
#include "tools/perf/patterns/ring.h"

namespace beeline::perf {
namespace {

struct Reductions {
  std::uint64_t times = 0;
  Ring::Reduced reduced = {};
};

Outcome<Reductions> measure(Rank& rank, Ring& ring, double expected_ns) {
  Reductions all;
  Pace pace(rank, expected_ns);
  while (const std::uint64_t portion = BL_TRY(pace.next())) {
    const Ring::Reduced reduced = BL_TRY(ring.reduce(portion));
    all.reduced.cost += reduced.cost;
    all.reduced.wrong += reduced.wrong;
  }
  all.times = pace.rounds();
  return all;
}

Row row_of(const Rank& rank, const Ring& ring, size_t size, const Reductions& all) {
  const Cost& cost = all.reduced.cost;
  const double ns = static_cast<double>(cost.wall_ns) / static_cast<double>(all.times);
  const double n = rank.count();
  Row row(size);
  row.set("messages", ring.messages() * all.times);
  row.set("time_us", ns / 1e3);
  row.set("algbw", static_cast<double>(size) / ns);
  row.set("busbw", static_cast<double>(size) / ns * 2 * (n - 1) / n);
  row.set("iterations", all.times);
  row.set_cpu(cpu_per_message(cost, ring.messages() * all.times));
  return row;
}

Outcome<bool> measure_allreduce(Rank& rank, const Comms& comms, size_t size) {
  rank.set_phase(fmt::format("{} bytes, first all-reduces", size));
  Ring ring(rank, comms, size);
  BL_TRY(ring.open());
  const Ring::Reduced first = BL_TRY(ring.reduce(1));
  const std::uint64_t few = warm_up_rounds(rank.options(), 3);
  const std::int64_t start = now_ns();
  const Ring::Reduced warm_up = BL_TRY(ring.reduce(few));
  const double each_ns = static_cast<double>(now_ns() - start) / static_cast<double>(few);

  rank.set_phase(fmt::format("{} bytes, measuring", size));
  const Reductions all = BL_TRY(measure(rank, ring, each_ns));
  Row row = row_of(rank, ring, size, all);
  row.set_wrong(first.wrong + warm_up.wrong + all.reduced.wrong);
  rank.report_row(row);
  BL_TRY(rank.team().barrier(fmt::format("end of {} bytes", size)));
  return ring.close();
}

}  // namespace

Outcome<bool> run_allreduce(Rank& rank) {
  const auto depth = static_cast<size_t>(rank.options().depth);
  rank.set_phase("connecting the ring");
  Comms comms =
      BL_TRY(open_comms(rank, plan_ring(rank.count(), rank.options().comms), {depth, depth}));
  for (const size_t size : rank.options().sizes) BL_TRY(measure_allreduce(rank, comms, size));
  rank.set_phase("closing");
  return close_comms(rank, std::move(comms));
}

}  // namespace beeline::perf
