// SPDX-License-Identifier: Apache-2.0
//
// See scripted.h.
#include "tools/perf/patterns/scripted.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/perf/lanes.h"

namespace beeline::perf {

tools::Outcome<size_t> agree_on_parts(Rank& rank) {
  int most = kMaxParts;
  for (const Device& device : rank.devices()) most = std::min(most, device.props.maxRecvs);
  return static_cast<size_t>(
      BL_TRY(rank.team().least("agreement on parts of a receive", std::max(most, 1))));
}

void ScriptedSender::begin(std::uint64_t round, std::uint64_t groups, Care care) {
  ScriptedEnd::begin(round, groups, care);
  next_ = 0;
  part_ = 0;
  free_at_.assign(places(), 0);
  if (care_ == Care::kEveryMessage) return;
  for (std::uint64_t g = 0; g < places(); ++g) {
    for (size_t part = 0; part < comm_.most_parts; ++part) {
      fill(place(g, part), pool_.size(), content(g, part));
    }
  }
}

void ScriptedSender::write_group() {
  for (size_t part = 0; part < group(next_).n; ++part) {
    fill(place(next_, part), group(next_).parts[part].size, content(next_, part));
  }
}

NetResult<bool> ScriptedSender::step() {
  const bool moved = BL_TRY(end_->poll());
  if (next_ == groups_ || end_->full()) return moved;
  const Group& now = group(next_);
  if (part_ == 0 && care_ == Care::kEveryMessage) {
    if (end_->completed() < free_at_[next_ % places()]) return moved;
    write_group();
  }
  const size_t part = now.order[part_];
  if (!BL_TRY(
          end_->post(place(next_, part), now.parts[part].size, now.parts[part].tag, pool_.mr()))) {
    return moved;
  }
  if (++part_ == now.n) {
    free_at_[next_ % places()] = end_->posted();
    part_ = 0;
    ++next_;
  }
  return true;
}

void ScriptedReceiver::begin(std::uint64_t round, std::uint64_t groups, Care care) {
  ScriptedEnd::begin(round, groups, care);
  posted_ = arrived_ = messages_ = bytes_ = 0;
  wrong_ = 0;
  pool_.memory().poison();
}

RecvGroup ScriptedReceiver::arguments(std::uint64_t g) const noexcept {
  const Group& now = group(g);
  RecvGroup arguments;
  for (size_t part = 0; part < now.n; ++part) {
    arguments.add(place(g, part), now.parts[part].capacity, now.parts[part].tag, pool_.mr());
  }
  return arguments;
}

NetResult<bool> ScriptedReceiver::step() {
  bool moved = false;
  if (BL_TRY(end_->poll())) {
    take(arrived_++);
    moved = true;
  }
  const bool has_place = posted_ - arrived_ < places() || care_ == Care::kLastMessages;
  if (posted_ < groups_ && has_place && !end_->full() && BL_TRY(end_->post(arguments(posted_)))) {
    ++posted_;
    moved = true;
  }
  return moved;
}

void ScriptedReceiver::take(std::uint64_t g) {
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
  if (care_ == Care::kEveryMessage) wrong_ += check(g);
}

// The bytes that came, and that none came behind them.
size_t ScriptedReceiver::check(std::uint64_t g) {
  const Group& now = group(g);
  size_t wrong = 0;
  for (size_t part = 0; part < now.n; ++part) {
    std::uint8_t* const data = place(g, part);
    const size_t size = now.parts[part].size;
    const std::string where =
        fmt::format("{}, group {}, part {} of {}", end_->label(), g, part, now.n);
    wrong += check_buffer(*rank_, where, data, size, content(g, part));
    if (care_ != Care::kEveryMessage) continue;
    const auto behind = std::count_if(data + size, data + now.parts[part].capacity,
                                      [](std::uint8_t byte) { return byte != kPoison; });
    if (behind > 0)
      rank_->report_wrong(fmt::format("{}: {} bytes written behind it", where, behind));
    wrong += static_cast<size_t>(behind);
    std::memset(data, kPoison, now.parts[part].capacity);
  }
  return wrong;
}

size_t ScriptedReceiver::check_last() {
  size_t wrong = check_guards(*rank_, end_->label(), pool_.memory());
  const std::uint64_t first = groups_ - std::min(groups_, places());
  for (std::uint64_t g = first; g < groups_; ++g) wrong += check(g);
  return wrong;
}

}  // namespace beeline::perf
