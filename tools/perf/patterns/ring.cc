// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/patterns/ring.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "tools/perf/lanes.h"
#include "tools/perf/patterns/summands.h"

namespace beeline::perf {
namespace {

constexpr size_t kCacheLine = 64;
// The size of all sources together, and of all results. It is chosen to fit into the CPU caches, as
// NCCL's buffers do.
constexpr size_t kMemory = size_t{4} << 20;
constexpr size_t kMostSlots = 1024;

// Neighboring slots must not share a cache line.
size_t stride_of(size_t bytes) {
  return std::max((bytes + kCacheLine - 1) / kCacheLine * kCacheLine, kCacheLine);
}

// Without a comparison, all all-reduces can use the same slot.
size_t slots_of(const Options& options, size_t stride) {
  return options.check ? std::clamp<size_t>(kMemory / stride, 1, kMostSlots) : 1;
}

// A slice consists of whole floats.
size_t slice_of(const Options& options) { return std::max(options.slice / 4 * 4, size_t{4}); }

}  // namespace

Ring::Ring(Rank& rank, const Comms& comms, size_t bytes)
    : rank_(rank),
      comms_(comms),
      bytes_(bytes),
      stride_(stride_of(bytes)),
      slots_(slots_of(rank.options(), stride_)),
      depth_(static_cast<size_t>(rank.options().depth)),
      layout_(bytes, comms.sends.size(), static_cast<size_t>(rank.count()),
              slice_of(rank.options())) {}

Outcome<bool> Ring::open() {
  source_.emplace(BL_TRY(Buffer::make(rank_.memory(), slots_ * stride_)));
  result_.emplace(BL_TRY(Buffer::make(rank_.memory(), slots_ * stride_)));
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

Outcome<bool> Ring::close() {
  return rank_.on_service([this]() -> Outcome<bool> {
    for (const auto& [end, mr] : registrations_) BL_TRY(end->deregister(mr));
    return true;
  });
}

Outcome<bool> Ring::add_channel(size_t c) {
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

Outcome<void*> Ring::add_memory(End& end, const Buffer& memory) {
  void* const mr = BL_TRY(end.register_memory(memory, memory.size()));
  registrations_.emplace_back(&end, mr);
  return mr;
}

std::uint64_t Ring::messages() const noexcept {
  return 4 * (static_cast<std::uint64_t>(rank_.count()) - 1) * layout_.slices() * channels_.size();
}

Outcome<Ring::Reduced> Ring::reduce(std::uint64_t times) {
  Reduced all;
  for (std::uint64_t left = times; left > 0;) {
    const std::uint64_t now = batch_size(left);
    const Reduced batch = BL_TRY(run_batch(now));
    all.cost += batch.cost;
    all.wrong += batch.wrong;
    left -= now;
  }
  return all;
}

std::uint64_t Ring::batch_size(std::uint64_t times) const noexcept {
  return rank_.options().check ? std::min<std::uint64_t>(times, slots_ - lead_in()) : times;
}

Outcome<Ring::Reduced> Ring::run_batch(std::uint64_t times) {
  const auto slots = static_cast<size_t>(std::min<std::uint64_t>(lead_in() + times, slots_));
  BL_TRY(prepare(slots));
  BL_TRY(rank_.team().barrier(fmt::format("all-reduces of {} bytes", bytes_)));
  const Cost cost = BL_TRY(run_timed(times));
  const size_t wrong = BL_TRY(check(slots));
  first_round_ += slots;
  return Reduced{.cost = cost, .wrong = wrong};
}

Outcome<Cost> Ring::run_timed(std::uint64_t times) {
  Cost cost;
  BL_TRY(rank_.on_progress([&]() -> Outcome<bool> {
    size_t slot = 0;
    for (std::uint64_t i = 0; i < lead_in(); ++i) BL_TRY(reduce_once(slot++));
    const CostMeter meter;
    for (std::uint64_t i = 0; i < times; ++i) BL_TRY(reduce_once(slot++ % slots_));
    cost = meter.read();
    return true;
  }));
  return cost;
}

Outcome<bool> Ring::reduce_once(size_t slot) {
  for (RingChannel& channel : channels_) channel.begin(slot * stride_);
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

Outcome<bool> Ring::prepare(size_t slots) {
  if (!rank_.options().check) return true;
  for (size_t slot = 0; slot < slots; ++slot) {
    fill_summands(source_->stage(slot * stride_), bytes_, rank_.id(), rank_.count(),
                  first_round_ + slot);
  }
  BL_TRY(source_->store({0, slots * stride_}));
  BL_TRY(result_->poison({0, slots * stride_}));
  return true;
}

Outcome<size_t> Ring::check(size_t slots) {
  if (!rank_.options().check) return size_t{0};
  const std::uint8_t* const results = BL_TRY(result_->fetch({0, slots * stride_}));
  size_t wrong = BL_TRY(check_guards_of_all());
  for (size_t slot = 0; slot < slots; ++slot) {
    wrong += check_sums(slot, results + slot * stride_);
    wrong += check_padding(slot, results + slot * stride_ + bytes_);
  }
  return wrong;
}

size_t Ring::check_sums(size_t slot, const std::uint8_t* sums) const {
  const Mismatch mismatch = compare_sums(sums, bytes_, rank_.count(), first_round_ + slot);
  if (mismatch.count > 0) {
    rank_.report_wrong(
        fmt::format("{} elements of {} bytes, the first at offset {}, in all-reduce {}",
                    mismatch.count, bytes_, mismatch.first, first_round_ + slot));
  }
  return mismatch.count;
}

size_t Ring::check_padding(size_t slot, const std::uint8_t* behind) const {
  const auto written = std::count_if(behind, behind + (stride_ - bytes_),
                                     [](std::uint8_t byte) { return byte != kPoison; });
  if (written > 0) {
    rank_.report_wrong(fmt::format("{} bytes behind the result were written, in all-reduce {}",
                                   written, first_round_ + slot));
  }
  return static_cast<size_t>(written);
}

Outcome<size_t> Ring::check_guards_of_all() const {
  size_t wrong = BL_TRY(check_guards(rank_, "the source", *source_)) +
                 BL_TRY(check_guards(rank_, "the result", *result_));
  for (const Buffer& scratch : scratch_) {
    wrong += BL_TRY(check_guards(rank_, "scratch memory", scratch));
  }
  return wrong;
}

}  // namespace beeline::perf
