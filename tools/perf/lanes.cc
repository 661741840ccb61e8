// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/lanes.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "tools/perf/content.h"

namespace beeline::perf {
namespace {

ContentId lane_content(const CommPlan& plan, std::uint64_t round, std::uint64_t slot) {
  return content_id(plan.from, plan.to, plan.index, round, slot);
}

}  // namespace

Outcome<Lanes> Lanes::open(Rank& rank, const Comms& comms, size_t size) {
  Lanes lanes(rank);
  const auto depth = static_cast<size_t>(rank.options().depth);
  const size_t ends = comms.sends.size() + comms.recvs.size();
  const size_t slots = rank.options().check_every ? depth : slots_for(size, depth, ends);
  for (const SendComm& send : comms.sends) {
    SlotPool pool = BL_TRY(SlotPool::make(rank, *send.end, size, slots));
    lanes.sends_.push_back({send.plan, send.end.get(), std::move(pool)});
  }
  for (const RecvComm& recv : comms.recvs) {
    SlotPool pool = BL_TRY(SlotPool::make(rank, *recv.end, size, slots));
    lanes.recvs_.push_back({recv.plan, recv.end.get(), std::move(pool)});
  }
  return lanes;
}

Outcome<bool> Lanes::close() {
  for (auto& lane : sends_) BL_TRY(lane.pool.release(*rank_));
  for (auto& lane : recvs_) BL_TRY(lane.pool.release(*rank_));
  return true;
}

Outcome<bool> Lanes::prepare(std::uint64_t round) {
  if (!rank_->options().check) return true;
  for (const auto& lane : recvs_) BL_TRY(lane.pool.memory().poison());
  for (const auto& lane : sends_) {
    for (size_t slot = 0; slot < lane.pool.slots(); ++slot) {
      BL_TRY(fill_piece(lane.pool.memory(), lane.pool.piece(slot),
                        lane_content(lane.plan, round, slot)));
    }
  }
  return true;
}

Outcome<size_t> Lanes::check(std::uint64_t round, std::uint64_t messages) {
  if (!rank_->options().check) return 0;
  const bool is_done = wrong_.has_value();
  size_t wrong = std::exchange(wrong_, std::nullopt).value_or(0);
  for (const auto& lane : recvs_) {
    const size_t used = is_done ? 0 : std::min<size_t>(messages, lane.pool.slots());
    for (size_t slot = 0; slot < used; ++slot) {
      const std::string where = fmt::format("{}, slot {}", lane.end->label(), slot);
      wrong += BL_TRY(check_piece(*rank_, where, lane.pool.memory(), lane.pool.piece(slot),
                                  lane_content(lane.plan, round, slot)));
    }
    wrong += BL_TRY(check_guards(*rank_, lane.end->label(), lane.pool.memory()));
  }
  for (const auto& lane : sends_) {
    wrong += BL_TRY(check_guards(*rank_, lane.end->label(), lane.pool.memory()));
  }
  return wrong;
}

Outcome<Cost> Lanes::stream(std::uint64_t round, std::uint64_t messages) {
  Cost cost;
  BL_TRY(rank_->on_progress([&]() -> Outcome<bool> {
    const CostMeter meter;
    BL_TRY(turn(round, messages));
    cost = meter.read();
    return true;
  }));
  return cost;
}

// Each round posts and tests once per end, as NCCL's progress functions do. If there was nothing to
// do, the thread yields the processor.
Outcome<bool> Lanes::turn(std::uint64_t round, std::uint64_t messages) {
  std::vector<std::uint64_t> goals;
  for (const auto& lane : recvs_) goals.push_back(lane.end->completed() + messages);
  for (const auto& lane : sends_) goals.push_back(lane.end->completed() + messages);
  for (;;) {
    bool moved = false;
    bool ready = true;
    size_t goal = 0;
    for (Lane<RecvEnd>& lane : recvs_) {
      auto& [plan, end, pool] = lane;
      const std::uint64_t last = goals[goal++];
      if (end->posted() < last) {
        RecvGroup group;
        group.add(pool.at(messages - (last - end->posted())), pool.size(), plan.index, pool.mr());
        if (BL_TRY(end->post(group))) moved = true;
      }
      if (BL_TRY(end->poll())) {
        moved = true;
        if (static_cast<size_t>(end->sizes()[0]) != pool.size()) {
          return fail(fmt::format("{}: {} bytes arrived where {} were sent", end->label(),
                                  end->sizes()[0], pool.size()));
        }
        const std::uint64_t arrived = messages - (last - end->completed()) - 1;
        if (rank_->options().check_every) BL_TRY(check_arrived(lane, round, arrived));
      }
      ready = ready && end->completed() == last;
    }
    for (auto& [plan, end, pool] : sends_) {
      const std::uint64_t last = goals[goal++];
      if (end->posted() < last) {
        std::uint8_t* const data = pool.at(messages - (last - end->posted()));
        if (BL_TRY(end->post(data, pool.size(), plan.index, pool.mr()))) moved = true;
      }
      if (BL_TRY(end->poll())) moved = true;
      ready = ready && end->completed() == last;
    }
    if (ready) return true;
    if (!moved) ::sched_yield();
  }
}

Outcome<bool> Lanes::check_arrived(const Lane<RecvEnd>& lane, std::uint64_t round,
                                   std::uint64_t message) {
  const Buffer& memory = lane.pool.memory();
  const Piece piece = lane.pool.piece(message);
  const std::string where = fmt::format("{}, message {}", lane.end->label(), message);
  const ContentId content = lane_content(lane.plan, round, message % lane.pool.slots());
  wrong_ = wrong_.value_or(0) + BL_TRY(check_piece(*rank_, where, memory, piece, content));
  BL_TRY(memory.poison(piece));
  return true;
}

NetResult<void> fill_piece(const Buffer& buffer, Piece piece, std::uint64_t id) {
  fill(buffer.stage(piece.at), piece.size, id);
  return buffer.store(piece);
}

NetResult<size_t> check_piece(Rank& rank, const std::string& where, const Buffer& buffer,
                              Piece piece, std::uint64_t id) {
  const Mismatch mismatch = compare(BL_TRY(buffer.fetch(piece)), piece.size, id);
  if (mismatch.count == 0) return size_t{0};
  rank.report_wrong(fmt::format(
      "{}: {} of {} bytes, the first at offset {}: 0x{:02x} instead of 0x{:02x}{}", where,
      mismatch.count, piece.size, mismatch.first, mismatch.found, mismatch.wanted,
      mismatch.found == kPoison ? ", as if it had never been written" : ""));
  return mismatch.count;
}

NetResult<size_t> check_guards(Rank& rank, const std::string& where, const Buffer& buffer) {
  const size_t broken = BL_TRY(buffer.broken_guards());
  if (broken > 0) {
    rank.report_wrong(fmt::format("{}: {} bytes outside the buffer were written", where, broken));
  }
  return broken;
}

}  // namespace beeline::perf
