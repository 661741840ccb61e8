// SPDX-License-Identifier: Apache-2.0
//
// The patterns stream, rate and bidir: a full window of messages over each comm. They differ in
// their plans and in the columns of the table.
#include <fmt/format.h>

#include "tools/perf/lanes.h"
#include "tools/perf/pace.h"
#include "tools/perf/pattern.h"
#include "tools/perf/patterns/round.h"

namespace beeline::perf {
namespace {

Row row_of(size_t size, size_t sends, size_t recvs, std::uint64_t messages, const Cost& cost,
           size_t wrong) {
  const auto ns = static_cast<double>(cost.wall_ns);
  Row row(size);
  row.set_wrong(wrong);
  row.set("messages", messages * (sends + recvs));
  row.set_cpu(cpu_per_message(cost, messages * (sends + recvs)));
  if (recvs > 0) {  // only the receiving side knows when the data has arrived
    const auto arrived = static_cast<double>(messages * recvs);
    const double bytes_per_ns = static_cast<double>(size) * arrived / ns;
    row.set("time_us", ns / 1e3 / static_cast<double>(messages));
    row.set("algbw", bytes_per_ns);
    row.set("busbw", bytes_per_ns);
    row.set("rate", arrived / ns * 1e3);
  }
  return row;
}

Outcome<bool> measure_stream(Rank& rank, const Comms& comms, size_t size) {
  rank.set_phase(fmt::format("{} bytes, first round", size));
  Lanes lanes = BL_TRY(Lanes::open(rank, comms, size));
  const auto window = static_cast<std::uint64_t>(rank.options().depth);
  BL_TRY(lanes.prepare(kFirst));
  BL_TRY(rank.team().barrier(fmt::format("first round of {} bytes", size)));
  BL_TRY(lanes.stream(kFirst, window));
  size_t wrong = BL_TRY(lanes.check(kFirst, window));

  const std::uint64_t few = warm_up_rounds(rank.options(), 2 * window);
  const Cost warm_up = BL_TRY(lanes.stream(kFirst, few));
  wrong += BL_TRY(lanes.check(kFirst, few));
  const double each = static_cast<double>(warm_up.wall_ns) / static_cast<double>(few);

  rank.set_phase(fmt::format("{} bytes, measuring", size));
  Cost cost;
  Pace pace(rank, each);
  for (std::uint64_t round = kMeasured; const std::uint64_t messages = BL_TRY(pace.next());
       ++round) {
    BL_TRY(lanes.prepare(round));
    BL_TRY(rank.team().barrier(fmt::format("measuring {} bytes", size)));
    cost += BL_TRY(lanes.stream(round, messages));
    wrong += BL_TRY(lanes.check(round, messages));
  }
  rank.report_row(row_of(size, comms.sends.size(), comms.recvs.size(), pace.rounds(), cost, wrong));
  BL_TRY(rank.team().barrier(fmt::format("end of {} bytes", size)));
  return lanes.close();
}

Outcome<bool> run_window(Rank& rank, Ways ways) {
  const auto depth = static_cast<size_t>(rank.options().depth);
  rank.set_phase("connecting");
  Comms comms = BL_TRY(
      open_comms(rank, plan_pairs(rank.count(), rank.options().comms, ways), {depth, depth}));
  for (const size_t size : rank.options().sizes) BL_TRY(measure_stream(rank, comms, size));
  rank.set_phase("closing");
  return close_comms(rank, std::move(comms));
}

}  // namespace

Outcome<bool> run_stream(Rank& rank) { return run_window(rank, Ways::kOne); }
Outcome<bool> run_rate(Rank& rank) { return run_window(rank, Ways::kOne); }
Outcome<bool> run_bidir(Rank& rank) { return run_window(rank, Ways::kBoth); }

}  // namespace beeline::perf
