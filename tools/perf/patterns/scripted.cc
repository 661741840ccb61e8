// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/patterns/scripted.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/perf/lanes.h"

namespace beeline::perf {

Outcome<size_t> agree_on_parts(Rank& rank) {
  int most = kMaxParts;
  for (const Device& device : rank.devices()) most = std::min(most, device.props.maxRecvs);
  return static_cast<size_t>(
      BL_TRY(rank.team().least("agreement on parts of a receive", std::max(most, 1))));
}

NetResult<void> ScriptedSender::begin(std::uint64_t round, std::uint64_t groups, Care care) {
  ScriptedEnd::begin(round, groups, care);
  next_ = 0;
  part_ = 0;
  free_at_.assign(places(), 0);
  if (care_ == Care::kEveryMessage) return {};
  for (std::uint64_t g = 0; g < places(); ++g) {
    for (size_t part = 0; part < comm_.most_parts; ++part) {
      BL_TRY(fill_piece(memory(), piece(g, part, pool_.size()), content(g, part)));
    }
  }
  return {};
}

NetResult<void> ScriptedSender::write_group() {
  const Group& now = group(next_);
  for (size_t part = 0; part < now.n; ++part) {
    BL_TRY(fill_piece(memory(), piece(next_, part, now.parts[part].size), content(next_, part)));
  }
  return {};
}

NetResult<bool> ScriptedSender::step() {
  const bool moved = BL_TRY(end_->poll());
  if (next_ == groups_ || end_->full()) return moved;
  const Group& now = group(next_);
  if (part_ == 0 && care_ == Care::kEveryMessage) {
    if (end_->completed() < free_at_[next_ % places()]) return moved;
    BL_TRY(write_group());
  }
  const size_t part = now.order[part_];
  if (!BL_TRY(end_->post(pool_.at(slot(next_, part)), now.parts[part].size, now.parts[part].tag,
                         pool_.mr()))) {
    return moved;
  }
  if (++part_ == now.n) {
    free_at_[next_ % places()] = end_->posted();
    part_ = 0;
    ++next_;
  }
  return true;
}

NetResult<void> ScriptedReceiver::begin(std::uint64_t round, std::uint64_t groups, Care care) {
  ScriptedEnd::begin(round, groups, care);
  posted_ = arrived_ = messages_ = bytes_ = 0;
  wrong_ = 0;
  return memory().poison();
}

RecvGroup ScriptedReceiver::arguments(std::uint64_t g) const noexcept {
  const Group& now = group(g);
  RecvGroup arguments;
  for (size_t part = 0; part < now.n; ++part) {
    arguments.add(pool_.at(slot(g, part)), now.parts[part].capacity, now.parts[part].tag,
                  pool_.mr());
  }
  return arguments;
}

NetResult<bool> ScriptedReceiver::step() {
  bool moved = false;
  if (BL_TRY(end_->poll())) {
    BL_TRY(take(arrived_++));
    moved = true;
  }
  const bool has_place = posted_ - arrived_ < places() || care_ == Care::kLastMessages;
  if (posted_ < groups_ && has_place && !end_->full() && BL_TRY(end_->post(arguments(posted_)))) {
    ++posted_;
    moved = true;
  }
  return moved;
}

NetResult<void> ScriptedReceiver::take(std::uint64_t g) {
  const Group& now = group(g);
  messages_ += now.n;
  for (size_t part = 0; part < now.n; ++part) {
    const auto arrived = static_cast<size_t>(end_->sizes()[part]);
    bytes_ += arrived;
    if (arrived == now.parts[part].size) continue;
    ++wrong_;
    rank_->report_wrong(
        fmt::format("{}: group {}, part {} of {}: {} bytes arrived where {} were sent",
                    end_->label(), g, part, now.n, arrived, now.parts[part].size));
  }
  if (care_ == Care::kEveryMessage) wrong_ += BL_TRY(check(g));
  return {};
}

// Compares the received bytes, and checks that no byte behind them was written.
NetResult<size_t> ScriptedReceiver::check(std::uint64_t g) {
  const Group& now = group(g);
  size_t wrong = 0;
  for (size_t part = 0; part < now.n; ++part) {
    const auto [tag, capacity, size] = now.parts[part];
    const Piece arrived = piece(g, part, size);
    const std::string where =
        fmt::format("{}, group {}, part {} of {}", end_->label(), g, part, now.n);
    wrong += BL_TRY(check_piece(*rank_, where, memory(), arrived, content(g, part)));
    if (care_ != Care::kEveryMessage) continue;
    wrong += BL_TRY(check_behind(where, {arrived.at + size, capacity - size}));
    BL_TRY(memory().poison(piece(g, part, capacity)));
  }
  return wrong;
}

NetResult<size_t> ScriptedReceiver::check_behind(const std::string& where, Piece behind) {
  const std::uint8_t* const data = BL_TRY(memory().fetch(behind));
  const auto written =
      std::count_if(data, data + behind.size, [](std::uint8_t byte) { return byte != kPoison; });
  if (written > 0) {
    rank_->report_wrong(fmt::format("{}: {} bytes behind it were written", where, written));
  }
  return static_cast<size_t>(written);
}

NetResult<size_t> ScriptedReceiver::check_last() {
  size_t wrong = BL_TRY(check_guards(*rank_, end_->label(), memory()));
  const std::uint64_t first = groups_ - std::min(groups_, places());
  for (std::uint64_t g = first; g < groups_; ++g) wrong += BL_TRY(check(g));
  return wrong;
}

}  // namespace beeline::perf
