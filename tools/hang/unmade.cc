// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/unmade.h"

#include <algorithm>
#include <set>

namespace beeline::hang {
namespace {

using pages::Process;

bool is_made(const SlotView& slot) { return slot.state == SlotState::kReady; }

std::uint64_t failed_at_ns(const SlotView& slot) {
  const auto event = std::ranges::find(slot.life, Event::kFailed, &EventView::event);
  return event != slot.life.end() ? event->time_ns : slot.closed_ns;
}

}  // namespace

// A process connects and accepts at the same time, so it may accept another peer after its
// connect() has failed.
bool was_replaced(const SlotView& failed, const Process& process) {
  return std::ranges::any_of(process.connections, [&](const SlotView& slot) {
    return is_made(slot) && slot.role == failed.role && slot.opened_ns > failed_at_ns(failed);
  });
}

std::optional<std::size_t> last_failure(const Process& process) {
  const auto last = std::ranges::max_element(process.failed, {}, failed_at_ns);
  if (last == process.failed.end() || was_replaced(*last, process)) return std::nullopt;
  return static_cast<std::size_t>(last - process.failed.begin());
}

bool has_failed_to_reach(const Process& process, std::uint64_t identity) {
  return std::ranges::any_of(process.failed, [&](const SlotView& slot) {
    return slot.peer_identity == identity && !was_replaced(slot, process);
  });
}

bool has_connections(const Process& process) {
  return std::ranges::any_of(process.connections, is_made);
}

std::vector<RankRange> missing_ranks(std::span<const Process> processes, const Process& member) {
  if (!member.ranks) return {};
  std::set<std::uint32_t> here;
  for (const Process& process : processes) {
    const bool is_member = process.job == member.job && process.ranks == member.ranks &&
                           process.life != pages::Life::kEnded;
    if (is_member && process.rank) here.insert(*process.rank);
  }
  here.insert(*member.ranks);  // the end of the last range
  std::vector<RankRange> missing;
  std::uint32_t next = 0;
  for (const std::uint32_t rank : here) {
    if (rank > *member.ranks) break;  // the page may say anything
    if (rank > next) missing.emplace_back(next, rank - 1);
    next = rank + 1;
  }
  return missing;
}

}  // namespace beeline::hang
