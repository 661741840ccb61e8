// SPDX-License-Identifier: Apache-2.0
//
// Ring all-reduce, sum of floats, over all ranks and --comms channels, out of place. Every channel
// has its share of the data and a ring of comms to itself, as in NCCL.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <optional>

#include "tools/perf/lanes.h"
#include "tools/perf/pattern.h"
#include "tools/perf/patterns/ring_channel.h"
#include "tools/perf/patterns/round.h"
#include "tools/perf/patterns/summands.h"

namespace beeline::perf {
namespace {

using tools::Outcome;

class Ring {
 public:
  Ring(Rank& rank, const Comms& comms, size_t bytes)
      : rank_(rank),
        comms_(comms),
        bytes_(bytes),
        depth_(static_cast<size_t>(rank.options().depth)),
        layout_(bytes, comms.sends.size(), static_cast<size_t>(rank.count()), slice(rank)) {}

  Outcome<bool> open() {
    source_.emplace(BL_TRY(Buffer::make(rank_.memory(), std::max<size_t>(bytes_, 1))));
    result_.emplace(BL_TRY(Buffer::make(rank_.memory(), std::max<size_t>(bytes_, 1))));
    scratch_.reserve(comms_.sends.size());
    for (size_t c = 0; c < comms_.sends.size(); ++c) {
      const size_t size = depth_ * layout_.slice_bytes();
      scratch_.push_back(BL_TRY(Buffer::make(rank_.memory(), size)));
    }
    return rank_.on_service([this]() -> Outcome<bool> {
      for (size_t c = 0; c < comms_.sends.size(); ++c) BL_TRY(add_channel(c));
      return true;
    });
  }

  Outcome<bool> close() {
    return rank_.on_service([this]() -> Outcome<bool> {
      for (const auto& [end, mr] : registrations_) BL_TRY(end->deregister(mr));
      return true;
    });
  }

  Outcome<bool> prepare(std::uint64_t round) {
    if (!rank_.options().check) return true;
    fill_summands(source_->stage(), bytes_, rank_.id(), rank_.count(), round);
    BL_TRY(source_->store({0, bytes_}));
    BL_TRY(result_->poison());
    return true;
  }

  Outcome<size_t> check(std::uint64_t round) {
    if (!rank_.options().check) return size_t{0};
    const std::uint8_t* const sums = BL_TRY(result_->fetch({0, bytes_}));
    const Mismatch mismatch = compare_sums(sums, bytes_, rank_.count(), round);
    if (mismatch.count > 0) {
      rank_.report_wrong(fmt::format("{} elements of {} bytes, the first at offset {}",
                                     mismatch.count, bytes_, mismatch.first));
    }
    size_t wrong = mismatch.count + BL_TRY(check_guards(rank_, "the source", *source_)) +
                   BL_TRY(check_guards(rank_, "the result", *result_));
    for (const Buffer& scratch : scratch_) {
      wrong += BL_TRY(check_guards(rank_, "scratch memory", scratch));
    }
    return wrong;
  }

  Outcome<Cost> reduce(std::uint64_t times) {
    Cost cost;
    BL_TRY(rank_.on_progress([&]() -> Outcome<bool> {
      const CostMeter meter;
      for (std::uint64_t i = 0; i < times; ++i) BL_TRY(reduce_once());
      cost = meter.read();
      return true;
    }));
    return cost;
  }

  // Sends and receives of this rank for one all-reduce.
  std::uint64_t messages() const noexcept {
    return 4 * (static_cast<std::uint64_t>(rank_.count()) - 1) * layout_.slices() *
           channels_.size();
  }

 private:
  // A slice holds whole floats.
  static size_t slice(const Rank& rank) {
    return std::max(rank.options().slice / 4 * 4, size_t{4});
  }

  Outcome<bool> add_channel(size_t c) {
    SendEnd* const send = comms_.sends[c].end.get();
    RecvEnd* const recv = comms_.recvs[c].end.get();
    RingChannel::Parts parts{.channel = c, .send = send, .recv = recv, .depth = depth_};
    parts.source.buffer = &*source_;
    parts.source.send_mr = BL_TRY(add_memory(*send, *source_));
    parts.result.buffer = &*result_;
    parts.result.send_mr = BL_TRY(add_memory(*send, *result_));
    parts.result.recv_mr = BL_TRY(add_memory(*recv, *result_));
    parts.scratch.buffer = &scratch_[c];
    parts.scratch.recv_mr = BL_TRY(add_memory(*recv, scratch_[c]));
    channels_.emplace_back(layout_, static_cast<size_t>(rank_.id()),
                           static_cast<size_t>(rank_.count()), parts);
    return true;
  }

  Outcome<void*> add_memory(End& end, const Buffer& memory) {
    void* const mr = BL_TRY(end.register_memory(memory, memory.size()));
    registrations_.emplace_back(&end, mr);
    return mr;
  }

  Outcome<bool> reduce_once() {
    for (RingChannel& channel : channels_) channel.begin();
    for (;;) {
      bool moved = false;
      bool ready = true;
      for (RingChannel& channel : channels_) {
        if (BL_TRY(channel.step())) moved = true;
        ready = ready && channel.done();
      }
      if (ready) return true;
      if (!moved) ::sched_yield();
    }
  }

  Rank& rank_;
  const Comms& comms_;
  const size_t bytes_;
  const size_t depth_;
  const RingLayout layout_;
  std::optional<Buffer> source_;
  std::optional<Buffer> result_;
  std::vector<Buffer> scratch_;  // channels keep their places
  std::vector<std::pair<End*, void*>> registrations_;
  std::vector<RingChannel> channels_;
};

Outcome<bool> measure_allreduce(Rank& rank, const Comms& comms, size_t size) {
  rank.set_phase(fmt::format("{} bytes, first all-reduce", size));
  Ring ring(rank, comms, size);
  BL_TRY(ring.open());
  BL_TRY(ring.prepare(kFirst));
  BL_TRY(rank.team().meet(fmt::format("first all-reduce of {} bytes", size)));
  BL_TRY(ring.reduce(1));
  size_t wrong = BL_TRY(ring.check(kFirst));

  BL_TRY(rank.team().meet(fmt::format("warm-up of {} bytes", size)));
  constexpr std::uint64_t kFew = 3;
  const Cost warm_up = BL_TRY(ring.reduce(kFew));
  const std::uint64_t times =
      BL_TRY(plan_iterations(rank, static_cast<double>(warm_up.wall_ns) / kFew));

  BL_TRY(ring.prepare(kMeasured));
  rank.set_phase(fmt::format("{} bytes, {} all-reduces", size, times));
  BL_TRY(rank.team().meet(fmt::format("measuring {} bytes", size)));
  const Cost cost = BL_TRY(ring.reduce(times));
  wrong += BL_TRY(ring.check(kMeasured));

  const double ns = static_cast<double>(cost.wall_ns) / static_cast<double>(times);
  const double n = rank.count();
  Row row(size);
  row.set_wrong(wrong);
  row.set("messages", ring.messages() * times);
  row.set("time_us", ns / 1e3);
  row.set("algbw", static_cast<double>(size) / ns);
  row.set("busbw", static_cast<double>(size) / ns * 2 * (n - 1) / n);
  row.set("iterations", times);
  row.set_cpu(cpu_per_message(cost, ring.messages() * times));
  rank.report_row(row);
  BL_TRY(rank.team().meet(fmt::format("end of {} bytes", size)));
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
