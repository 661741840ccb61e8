// SPDX-License-Identifier: Apache-2.0
//
// The pattern latency: the even rank of a pair sends and the odd rank answers, over the comms in
// turn. As in NCCL, receives are posted in advance (--depth), so that no message waits for one.
// Like other programs that measure latency, it takes the time from the call that sends until the
// answer has arrived. The receive for a later answer is posted afterwards.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "tools/perf/lanes.h"
#include "tools/perf/pace.h"
#include "tools/perf/pattern.h"
#include "tools/perf/patterns/round.h"
#include "tools/perf/samples.h"

namespace beeline::perf {
namespace {

enum class Side { kPing, kPong };

class PingPong {
 public:
  PingPong(Lanes& lanes, Side side, std::uint64_t rounds, std::uint64_t depth,
           Samples& half_trips_ns)
      : lanes_(lanes),
        side_(side),
        rounds_(rounds),
        ahead_(std::min<std::uint64_t>(rounds, depth * lanes.recvs().size())),
        half_trips_ns_(half_trips_ns) {
    if (side == Side::kPing) half_trips_ns.make_room(rounds);
  }

  // Runs on the progress thread.
  Outcome<bool> run() {
    for (std::uint64_t round = 0; round < ahead_; ++round) BL_TRY(post_receive(round));
    for (std::uint64_t round = 0; round < rounds_; ++round) {
      BL_TRY(side_ == Side::kPing ? ask(round) : answer(round));
      BL_TRY(post_receive(round + ahead_));
    }
    return await_send();
  }

 private:
  Outcome<bool> ask(std::uint64_t round) {
    const std::int64_t sent_ns = now_ns();
    BL_TRY(send(round));
    BL_TRY(await_receive(round));
    half_trips_ns_.add((now_ns() - sent_ns) / 2);
    return await_send();
  }

  Outcome<bool> answer(std::uint64_t round) {
    BL_TRY(await_receive(round));
    BL_TRY(await_send());
    return send(round);
  }

  Lane<RecvEnd>& recv_lane(std::uint64_t round) {
    return lanes_.recvs()[round % lanes_.recvs().size()];
  }
  Lane<SendEnd>& send_lane(std::uint64_t round) {
    return lanes_.sends()[round % lanes_.sends().size()];
  }

  std::uint64_t turn_of(std::uint64_t round) const { return round / lanes_.recvs().size(); }

  // Does nothing after the last round.
  Outcome<bool> post_receive(std::uint64_t round) {
    if (round >= rounds_) return true;
    auto& [plan, end, pool] = recv_lane(round);
    RecvGroup group;
    group.add(pool.at(turn_of(round)), pool.size(), plan.index, pool.mr());
    while (!BL_TRY(end->post(group))) ::sched_yield();
    return true;
  }

  Outcome<bool> send(std::uint64_t round) {
    auto& [plan, end, pool] = send_lane(round);
    while (!BL_TRY(end->post(pool.at(turn_of(round)), pool.size(), plan.index, pool.mr()))) {
      ::sched_yield();
    }
    sending_ = end;
    return true;
  }

  // Both requests are tested, because a plugin may need test() to make progress with a send.
  Outcome<bool> await_receive(std::uint64_t round) {
    RecvEnd& end = *recv_lane(round).end;
    while (!BL_TRY(end.poll())) {
      if (sending_ == nullptr || !BL_TRY(sending_->poll())) ::sched_yield();
    }
    return true;
  }

  Outcome<bool> await_send() {
    while (sending_ != nullptr && !sending_->idle()) {
      if (!BL_TRY(sending_->poll())) ::sched_yield();
    }
    return true;
  }

  Lanes& lanes_;
  const Side side_;
  const std::uint64_t rounds_;
  const std::uint64_t ahead_;  // receives that are posted before the first message
  SendEnd* sending_ = nullptr;
  Samples& half_trips_ns_;
};

struct Measured {
  std::uint64_t rounds = 0;
  Samples half_trips_ns;
  Cost cost;
};

Outcome<bool> play(Rank& rank, Lanes& lanes, std::uint64_t rounds, Measured& measured) {
  measured.rounds += rounds;
  if (lanes.sends().empty()) return true;  // a rank without a partner
  PingPong game(lanes, rank.id() % 2 == 0 ? Side::kPing : Side::kPong, rounds,
                static_cast<std::uint64_t>(rank.options().depth), measured.half_trips_ns);
  return rank.on_progress([&]() -> Outcome<bool> {
    const CostMeter meter;
    BL_TRY(game.run());
    measured.cost += meter.read();
    return true;
  });
}

Row row_of(size_t size, const Measured& measured, size_t wrong) {
  Row row(size);
  row.set_wrong(wrong);
  row.set("messages", 2 * measured.rounds);
  row.set_cpu(cpu_per_message(measured.cost, 2 * measured.rounds));
  const Samples& times = measured.half_trips_ns;
  if (times.kept().empty()) return row;
  const std::vector<std::int64_t> sorted = times.sorted();
  const auto us = [](std::int64_t ns) { return static_cast<double>(ns) / 1e3; };
  row.set("least_us", us(times.least()));
  row.set("time_us", us(sorted[sorted.size() / 2]));
  row.set("p99_us", us(sorted[sorted.size() * 99 / 100]));
  row.set("most_us", us(times.greatest()));
  return row;
}

Outcome<bool> measure_latency(Rank& rank, const Comms& comms, size_t size) {
  rank.set_phase(fmt::format("{} bytes, first round", size));
  Lanes lanes = BL_TRY(Lanes::open(rank, comms, size));
  const auto every_comm = static_cast<std::uint64_t>(rank.options().comms);
  BL_TRY(lanes.prepare(kFirst));
  BL_TRY(rank.team().barrier(fmt::format("first round of {} bytes", size)));
  Measured first;
  BL_TRY(play(rank, lanes, every_comm, first));
  size_t wrong = BL_TRY(lanes.check(kFirst, 1));

  const std::uint64_t few = warm_up_rounds(rank.options(), 10 + every_comm);
  Measured warm_up;
  BL_TRY(play(rank, lanes, few, warm_up));
  const double each = static_cast<double>(warm_up.cost.wall_ns) / static_cast<double>(few);

  rank.set_phase(fmt::format("{} bytes, measuring", size));
  Measured measured;
  Pace pace(rank, each);
  for (std::uint64_t round = kMeasured; const std::uint64_t portion = BL_TRY(pace.next());
       ++round) {
    const std::uint64_t trips = std::max(portion, every_comm);
    BL_TRY(lanes.prepare(round));
    BL_TRY(rank.team().barrier(fmt::format("measuring {} bytes", size)));
    BL_TRY(play(rank, lanes, trips, measured));
    wrong += BL_TRY(lanes.check(round, trips / every_comm));
  }
  rank.report_row(row_of(size, measured, wrong));
  BL_TRY(rank.team().barrier(fmt::format("end of {} bytes", size)));
  return lanes.close();
}

}  // namespace

Outcome<bool> run_latency(Rank& rank) {
  rank.set_phase("connecting");
  Comms comms =
      BL_TRY(open_comms(rank, plan_pairs(rank.count(), rank.options().comms, Ways::kBoth),
                        {.sends = 1, .recvs = static_cast<size_t>(rank.options().depth)}));
  for (const size_t size : rank.options().sizes) BL_TRY(measure_latency(rank, comms, size));
  rank.set_phase("closing");
  return close_comms(rank, std::move(comms));
}

}  // namespace beeline::perf
