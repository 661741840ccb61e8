// SPDX-License-Identifier: Apache-2.0
//
// The pattern multirecv: grouped receives. NCCL lets several senders share a comm and receives for
// all of them in one call. Tags match sends to the parts of a group, and the sends come in another
// order than the parts.
#include <fmt/format.h>
#include <sched.h>

#include "tools/perf/lanes.h"
#include "tools/perf/pace.h"
#include "tools/perf/pattern.h"
#include "tools/perf/patterns/round.h"
#include "tools/perf/patterns/scripted.h"

namespace beeline::perf {
namespace {

constexpr size_t kScriptGroups = 64;

struct Moved {
  Cost cost = {};
  std::uint64_t parts = 0;  // received by this rank
  std::uint64_t bytes = 0;

  Moved& operator+=(const Moved& more) noexcept {
    cost += more.cost;
    parts += more.parts;
    bytes += more.bytes;
    return *this;
  }
};

class Groups {
 public:
  Groups(Rank& rank, size_t most_parts) : rank_(rank), most_parts_(most_parts) {}

  Outcome<bool> open(const Comms& comms, size_t size) {
    const auto depth = static_cast<size_t>(rank_.options().depth);
    const size_t ends = comms.sends.size() + comms.recvs.size();
    const size_t slots = slots_for(size * most_parts_, depth, ends) * most_parts_;
    for (const SendComm& send : comms.sends) {
      SlotPool pool = BL_TRY(SlotPool::make(rank_, *send.end, size, slots));
      senders_.emplace_back(*send.end, script(send.plan, size), std::move(pool));
    }
    for (const RecvComm& recv : comms.recvs) {
      SlotPool pool = BL_TRY(SlotPool::make(rank_, *recv.end, size, slots));
      receivers_.emplace_back(rank_, *recv.end, script(recv.plan, size), std::move(pool));
    }
    return true;
  }

  Outcome<bool> close() {
    for (auto& sender : senders_) BL_TRY(sender.pool().release(rank_));
    for (auto& receiver : receivers_) BL_TRY(receiver.pool().release(rank_));
    return true;
  }

  Outcome<bool> begin(std::uint64_t round, std::uint64_t groups, Care care) {
    care_ = care;
    for (auto& sender : senders_) BL_TRY(sender.begin(round, groups, care));
    for (auto& receiver : receivers_) BL_TRY(receiver.begin(round, groups, care));
    return true;
  }

  Outcome<Moved> move() {
    Moved moved;
    BL_TRY(rank_.on_progress([&]() -> Outcome<bool> {
      const CostMeter meter;
      BL_TRY(turn());
      moved.cost = meter.read();
      return true;
    }));
    for (const auto& receiver : receivers_) {
      moved.parts += receiver.messages();
      moved.bytes += receiver.bytes();
    }
    return moved;
  }

  Outcome<size_t> check() {
    size_t wrong = 0;
    for (auto& receiver : receivers_) {
      wrong += receiver.wrong();  // sizes
      if (rank_.options().check && care_ == Care::kLastMessages) {
        wrong += BL_TRY(receiver.check_last());
      }
    }
    return wrong;
  }

  Row row(size_t size, std::uint64_t groups, const Moved& moved) const {
    const auto& [cost, parts, bytes] = moved;
    const auto ns = static_cast<double>(cost.wall_ns);
    Row row(size);
    row.set("messages", parts);
    if (receivers_.empty()) {
      row.set_cpu(cpu_per_message(cost, groups * senders_.size()));
      return row;
    }
    const auto all = static_cast<double>(groups * receivers_.size());
    row.set_cpu(cpu_per_message(cost, parts));
    row.set("time_us", ns / 1e3 / static_cast<double>(groups));
    row.set("parts", static_cast<double>(parts) / all);
    row.set("rate", all / ns * 1e3);
    row.set("algbw", static_cast<double>(bytes) / ns);
    return row;
  }

 private:
  ScriptedComm script(const CommPlan& plan, size_t size) const {
    const std::uint64_t seed = content_id(plan.from, plan.to, plan.index, size);
    return {.plan = plan,
            .script = fixed_script(seed, kScriptGroups, most_parts_, size),
            .most_parts = most_parts_};
  }

  Outcome<bool> turn() {
    for (;;) {
      bool moved = false;
      bool ready = true;
      for (auto& receiver : receivers_) {
        if (BL_TRY(receiver.step())) moved = true;
        ready = ready && receiver.done();
      }
      for (auto& sender : senders_) {
        if (BL_TRY(sender.step())) moved = true;
        ready = ready && sender.done();
      }
      if (ready) return true;
      if (!moved) ::sched_yield();
    }
  }

  Rank& rank_;
  const size_t most_parts_;
  Care care_ = Care::kLastMessages;
  std::vector<ScriptedSender> senders_;
  std::vector<ScriptedReceiver> receivers_;
};

Outcome<bool> measure_groups(Rank& rank, const Comms& comms, size_t most_parts, size_t size) {
  rank.set_phase(fmt::format("{} bytes, first groups", size));
  Groups groups(rank, most_parts);
  BL_TRY(groups.open(comms, size));
  const Care care = rank.options().check ? Care::kEveryMessage : Care::kLastMessages;
  BL_TRY(groups.begin(kFirst, kScriptGroups, care));
  BL_TRY(rank.team().barrier(fmt::format("first groups of {} bytes", size)));
  BL_TRY(groups.move());
  size_t wrong = BL_TRY(groups.check());

  const std::uint64_t few = warm_up_rounds(rank.options(), kScriptGroups);
  BL_TRY(groups.begin(kWarmUp, few, Care::kLastMessages));
  BL_TRY(rank.team().barrier(fmt::format("warm-up of {} bytes", size)));
  const Moved warm_up = BL_TRY(groups.move());
  const double each = static_cast<double>(warm_up.cost.wall_ns) / static_cast<double>(few);

  rank.set_phase(fmt::format("{} bytes, measuring", size));
  Moved moved;
  Pace pace(rank, each);
  for (std::uint64_t round = kMeasured; const std::uint64_t count = BL_TRY(pace.next()); ++round) {
    BL_TRY(groups.begin(round, count, Care::kLastMessages));
    BL_TRY(rank.team().barrier(fmt::format("measuring {} bytes", size)));
    moved += BL_TRY(groups.move());
    wrong += BL_TRY(groups.check());
  }
  Row row = groups.row(size, pace.rounds(), moved);
  row.set_wrong(wrong);
  rank.report_row(row);
  BL_TRY(rank.team().barrier(fmt::format("end of {} bytes", size)));
  return groups.close();
}

}  // namespace

Outcome<bool> run_multirecv(Rank& rank) {
  const size_t most_parts = BL_TRY(agree_on_parts(rank));
  const auto depth = static_cast<size_t>(rank.options().depth);
  rank.set_phase("connecting");
  Comms comms = BL_TRY(open_comms(rank, plan_pairs(rank.count(), rank.options().comms, Ways::kOne),
                                  {.sends = depth * most_parts, .recvs = depth}));
  for (const size_t size : rank.options().sizes) {
    BL_TRY(measure_groups(rank, comms, most_parts, size));
  }
  rank.set_phase("closing");
  return close_comms(rank, std::move(comms));
}

}  // namespace beeline::perf
