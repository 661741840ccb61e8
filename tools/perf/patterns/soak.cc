// SPDX-License-Identifier: Apache-2.0
//
// Random traffic in which every message is compared: comms between random ranks with random sizes,
// groups, orders of sends and depths, pauses in polling, registrations while data moves, and ends
// that are closed as soon as their own traffic is done. Epochs follow each other until the time is
// up.
//
// Choices on which both ends of a comm must agree come from the common seed. Choices of one rank
// (pauses, registrations) come from that seed and the rank's number.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "tools/perf/lanes.h"
#include "tools/perf/pattern.h"
#include "tools/perf/patterns/scripted.h"

namespace beeline::perf {
namespace {

constexpr std::uint64_t kMostGroups = 200;
constexpr std::uint64_t kMostPauseUs = 2'000;

struct Common {
  std::uint64_t seed;
  size_t most_parts;
};

std::vector<CommPlan> random_plans(Rank& rank, Random& random) {
  std::vector<CommPlan> plans;
  const int ranks = rank.count();
  const auto most = static_cast<std::uint64_t>(rank.options().comms);
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from == to) continue;
      for (std::uint64_t c = random.below(most + 1); c > 0; --c) {
        plans.push_back({from, to, static_cast<int>(c - 1)});
      }
    }
  }
  if (plans.empty()) plans.push_back({0, 1, 0});
  return plans;
}

class Epoch {
 public:
  Epoch(Rank& rank, const Common& common, std::uint64_t number)
      : rank_(rank),
        common_(common),
        number_(number),
        shared_(content_id(common.seed, number)),
        own_(content_id(common.seed, number, rank.id(), 1)) {}

  Outcome<Row> run() {
    const std::int64_t start = now_ns();
    const std::vector<CommPlan> plans = random_plans(rank_, shared_);
    const auto deepest = static_cast<std::uint64_t>(rank_.options().depth);
    depth_ = static_cast<size_t>(1 + shared_.below(deepest));
    groups_ = 1 + shared_.below(kMostGroups);
    rank_.set_phase(fmt::format("epoch {}, connecting {} comms", number_, plans.size()));
    Comms comms =
        BL_TRY(open_comms(rank_, plans, {.sends = depth_ * common_.most_parts, .recvs = depth_}));
    BL_TRY(open_ends(comms));
    rank_.set_phase(fmt::format("epoch {}, {} comms, {} groups on each, depth {}", number_,
                                plans.size(), groups_, depth_));
    BL_TRY(rank_.on_both([this] { return register_meanwhile(); }, [this] { return move_all(); }));
    const size_t own_ends = comms.sends.size() + comms.recvs.size();
    Row row = BL_TRY(describe());
    for (auto& sender : senders_) BL_TRY(sender.pool().release(rank_));
    for (auto& receiver : receivers_) BL_TRY(receiver.pool().release(rank_));
    BL_TRY(close_comms(rank_, std::move(comms)));  // the peer may still be using its end
    row.set("comms", static_cast<double>(own_ends) / 2);
    row.set("time_us", static_cast<double>(now_ns() - start) / 1e3);
    return row;
  }

 private:
  size_t largest() const {
    const auto& sizes = rank_.options().sizes;
    return *std::max_element(sizes.begin(), sizes.end());
  }

  ScriptedComm script(const CommPlan& plan) const {
    const std::uint64_t seed = content_id(common_.seed, number_, plan.from, plan.to, plan.index, 2);
    return {.plan = plan,
            .script = random_script(seed, groups_, common_.most_parts, rank_.options().sizes),
            .most_parts = common_.most_parts};
  }

  Outcome<bool> open_ends(const Comms& comms) {
    const size_t ends = comms.sends.size() + comms.recvs.size();
    const size_t places = slots_for(largest() * common_.most_parts, depth_, ends);
    const size_t slots = places * common_.most_parts;
    const Care care = rank_.options().check ? Care::kEveryMessage : Care::kLastMessages;
    for (const SendComm& send : comms.sends) {
      SlotPool pool = BL_TRY(SlotPool::make(rank_, *send.end, largest(), slots));
      senders_.emplace_back(*send.end, script(send.plan), std::move(pool));
      BL_TRY(senders_.back().begin(number_, groups_, care));
    }
    for (const RecvComm& recv : comms.recvs) {
      SlotPool pool = BL_TRY(SlotPool::make(rank_, *recv.end, largest(), slots));
      receivers_.emplace_back(rank_, *recv.end, script(recv.plan), std::move(pool));
      BL_TRY(receivers_.back().begin(number_, groups_, care));
    }
    return true;
  }

  Outcome<bool> move_all() {
    Outcome<bool> outcome = move();
    moving_ = false;
    return outcome;
  }

  // Runs on the progress thread, with pauses in polling, because NCCL sleeps when it has no work.
  Outcome<bool> move() {
    bool ready = false;
    while (!ready) {
      bool moved = false;
      ready = true;
      for (auto& receiver : receivers_) {
        if (BL_TRY(receiver.step())) moved = true;
        ready = ready && receiver.done();
      }
      for (auto& sender : senders_) {
        if (BL_TRY(sender.step())) moved = true;
        ready = ready && sender.done();
      }
      if (moved && own_.one_in(500)) ::usleep(static_cast<useconds_t>(own_.below(kMostPauseUs)));
      if (!moved) ::sched_yield();
    }
    return true;
  }

  // Runs on the service thread at the same time: registers and deregisters buffers on busy comms,
  // as NCCL does for users. Some are new memory, others are part of memory that is already
  // registered.
  Outcome<bool> register_meanwhile() {
    Random random(content_id(common_.seed, number_, rank_.id(), 3));
    const size_t ends = senders_.size() + receivers_.size();
    while (moving_ && ends > 0) {
      const size_t which = random.below(ends);
      if (which < senders_.size()) {
        BL_TRY(register_once(random, senders_[which].end(), senders_[which].memory()));
      } else {
        ScriptedReceiver& receiver = receivers_[which - senders_.size()];
        BL_TRY(register_once(random, receiver.end(), receiver.memory()));
      }
      ++registrations_;
    }
    return true;
  }

  Outcome<bool> register_once(Random& random, End& end, const Buffer& in_use) {
    const Buffer fresh = BL_TRY(Buffer::make(rank_.memory(), 1 + random.below(65536)));
    const Buffer& memory = random.one_in(3) ? in_use : fresh;
    const size_t size = 1 + random.below(memory.size());
    void* const mr = BL_TRY(end.register_memory(memory, size));
    ::usleep(static_cast<useconds_t>(random.below(500)));
    return BL_TRY(end.deregister(mr));
  }

  Outcome<Row> describe() const {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    size_t wrong = 0;
    for (const auto& receiver : receivers_) {
      messages += receiver.messages();
      bytes += receiver.bytes();
      wrong += receiver.wrong();
      wrong += BL_TRY(check_guards(rank_, receiver.label(), receiver.memory()));
    }
    Row row(largest());
    row.set_wrong(wrong);
    row.set("messages", messages);
    row.set("megabytes", static_cast<double>(bytes) / 1e6);
    row.set("registrations", registrations_);
    return row;
  }

  Rank& rank_;
  const Common common_;
  const std::uint64_t number_;
  Random shared_;
  Random own_;
  size_t depth_ = 1;
  std::uint64_t groups_ = 1;
  std::vector<ScriptedSender> senders_;
  std::vector<ScriptedReceiver> receivers_;
  std::atomic<bool> moving_{true};
  std::uint64_t registrations_ = 0;
};

// Every process may have chosen a seed of its own. Rank 0's seed is used.
Outcome<Common> agree(Rank& rank) {
  const std::string mine = fmt::to_string(rank.options().seed);
  const auto seeds = BL_TRY(rank.team().gather("agreement on a seed", mine));
  return Common{std::stoull(seeds.front()), BL_TRY(agree_on_parts(rank))};
}

}  // namespace

Outcome<bool> run_soak(Rank& rank) {
  const Common common = BL_TRY(agree(rank));
  const std::int64_t start = now_ns();
  const std::uint64_t epochs = rank.options().iterations;
  for (std::uint64_t number = 0;; ++number) {
    Epoch epoch(rank, common, number);
    rank.report_row(BL_TRY(epoch.run()));
    const double elapsed = static_cast<double>(now_ns() - start) / 1e9;
    const double longest = BL_TRY(rank.team().greatest("end of an epoch", elapsed));
    if (epochs > 0 ? number + 1 >= epochs : longest >= seconds_of(rank.options())) return true;
  }
}

}  // namespace beeline::perf
