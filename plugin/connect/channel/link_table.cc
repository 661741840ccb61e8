// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/channel/link_table.h"

#include <algorithm>

namespace beeline {

std::shared_ptr<CommLink> LinkTable::find(std::uint32_t ours) const {
  const auto found = entries_.find(ours);
  return found == entries_.end() ? nullptr : found->second.link.lock();
}

bool LinkTable::needs_channel() const noexcept {
  return std::ranges::any_of(entries_, [](const auto& numbered) {
    const Entry& entry = numbered.second;
    if (entry.is_closed) return true;
    if (entry.is_peer_closed) return false;
    const std::shared_ptr<CommLink> link = entry.link.lock();
    return link == nullptr || link->state() != Link::State::kDead;
  });
}

std::vector<std::shared_ptr<CommLink>> LinkTable::all() const {
  std::vector<std::shared_ptr<CommLink>> links;
  for (const auto& [ours, entry] : entries_) {
    if (std::shared_ptr<CommLink> link = entry.link.lock()) links.push_back(std::move(link));
  }
  return links;
}

std::size_t LinkTable::kill(const std::string& cause) {
  std::size_t killed = 0;
  for (const auto& link : all()) killed += link->die(cause) ? 1 : 0;
  return killed;
}

void LinkTable::lose_device(const DeviceContext& device) {
  for (const auto& link : all()) {
    // It may have been the last one that could stand in.
    if (link->is_on(device) || link->exchanges_reports()) link->lose_device(device);
  }
}

std::uint64_t LinkTable::progress() const {
  std::uint64_t sum = 0;
  for (const auto& link : all()) sum += link->has_ended() ? 0 : link->progress();
  return sum;
}

bool LinkTable::close(const GoneLink& link, bool keep) {
  const auto found = entries_.find(link.numbers.ours);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  if (!keep || entry.is_peer_closed || !link.settled) {
    entries_.erase(found);
    return false;
  }
  entry.is_closed = true;
  entry.goodbye = {.comm = link.numbers.theirs, .settled = *link.settled};
  return true;
}

void LinkTable::on_goodbye(const wire::Goodbye& goodbye) {
  const std::shared_ptr<CommLink> link = find(goodbye.comm);
  if (link != nullptr) link->on_goodbye(goodbye.settled);
  on_given_up(goodbye.comm);
}

void LinkTable::on_given_up(std::uint32_t ours) {
  const auto found = entries_.find(ours);
  if (found == entries_.end()) return;
  found->second.is_peer_closed = true;
  if (found->second.is_closed) entries_.erase(found);
}

bool LinkTable::answer_for(std::uint32_t ours, MessageSink& outbox) const {
  const auto found = entries_.find(ours);
  if (found == entries_.end()) return false;
  if (found->second.is_closed) outbox.send(wire::encode(found->second.goodbye));
  return true;
}

void LinkTable::say_again(MessageSink& outbox) const {
  for (const auto& [ours, entry] : entries_) {
    if (entry.ready) outbox.send(wire::encode(*entry.ready));
    const std::shared_ptr<CommLink> link = entry.link.lock();
    if (link != nullptr) link->say_again();
    if (entry.is_closed) say_closed(ours, outbox);
  }
}

void LinkTable::say_closed(std::uint32_t ours, MessageSink& outbox) const {
  BL_ASSERT(entries_.at(ours).is_closed, "this end has closed the comm");
  const wire::Goodbye& goodbye = entries_.at(ours).goodbye;
  outbox.send(wire::encode(goodbye));
  outbox.send(wire::encode(wire::StillOpen{.comm = goodbye.comm, .our_comm = ours}));
}

}  // namespace beeline
