// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/handshake/comm_service.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/clock.h"

namespace beeline {
namespace {

// After this time of making paths anew, received messages get their turn.
constexpr std::int64_t kOrdersOfTurnNs = 2 * kNsPerMs;
// How soon a comm that could not be served is tried again.
constexpr std::int64_t kServeAgainNs = 10 * kNsPerMs;
constexpr std::int64_t kLeastPauseNs = kNsPerMs / 10;

}  // namespace

bool CommService::is_about_paths(verbs::EventKind kind) noexcept {
  switch (kind) {
    case verbs::EventKind::kPortError:
    case verbs::EventKind::kPortActive:
    case verbs::EventKind::kGidChange:
    case verbs::EventKind::kPkeyChange:
    case verbs::EventKind::kLidChange:
    case verbs::EventKind::kDeviceFatal: return true;
    case verbs::EventKind::kCqError:
    case verbs::EventKind::kQpFatal:
    case verbs::EventKind::kSmChange:
    case verbs::EventKind::kOther: return false;
  }
  return false;
}

void CommService::take(LinkOrder order) {
  const auto* const fence = order.order ? std::get_if<FencePath>(&order.order->what) : nullptr;
  if (order.order && fence == nullptr) return orders_.push_back(std::move(order));
  // A fence does not wait for paths that are made anew: data waits for it.
  if (fence != nullptr) (*fence)->carry_out();
  const auto link = order.link.lock();
  if (link == nullptr) return;
  if (fence != nullptr) link->alert();
  serve(link);
}

// Between turns come the messages of peers: when a port has failed, all comms should be off it
// before many paths are made anew, at milliseconds each.
void CommService::carry_out_orders() {
  const std::int64_t end_of_turn = now_ns() + kOrdersOfTurnNs;
  while (!orders_.empty() && now_ns() <= end_of_turn) {
    LinkOrder order = std::move(orders_.front());
    orders_.pop_front();
    const std::shared_ptr<CommLink> link = order.link.lock();
    if (link == nullptr) continue;
    remaker_.take(link, *std::move(order.order));
    serve(link);
  }
}

void CommService::serve_all(const std::vector<std::shared_ptr<CommLink>>& links) {
  for (const auto& link : links) link->alert();  // those in use begin at once
  for (const auto& link : links) serve(link);
}

void CommService::look_for_messages(const std::vector<std::shared_ptr<CommLink>>& links) {
  for (const auto& link : links) {
    if (!link->has_in_band_news()) continue;
    link->alert();
    serve(link);
  }
}

void CommService::on_queue_error(const std::vector<std::shared_ptr<CommLink>>& links,
                                 const DeviceContext& context, const verbs::AsyncEvent& event) {
  for (const auto& link : links) {
    const auto failed = remaker_.queue_failed(link->numbers().ours, context, event);
    if (!failed) continue;
    link->on_result(*failed);
    return serve(link);
  }
}

bool CommService::are_ports_down(const std::vector<std::shared_ptr<CommLink>>& links) {
  const auto is_down = [this](const Device* device) {
    const Result<const PortFacts*> facts = ports_->facts(device->newest());
    return !facts || !(*facts)->is_active();
  };
  return !links.empty() && std::ranges::all_of(links, [&](const auto& link) {
    return std::ranges::all_of(link->devices(), is_down);
  });
}

void CommService::serve(const std::shared_ptr<CommLink>& link) {
  const bool is_served = link->serve();
  if (link->has_ended()) return;
  const std::int64_t now = now_ns();
  std::int64_t next = link->due_ns();
  if (!is_served) {
    if (next <= now) link->alert();  // the comm is in use: its next call does what is due
    next = now + kServeAgainNs;
  }
  std::int64_t& timer = link->timer_ns();
  if (next == Link::kNever || timer <= next) return;
  next = std::max(next, now + kLeastPauseNs);  // the other links have their turn
  timer = next;
  timers_->at(next, [this, next, weak = std::weak_ptr(link)] {
    const auto still_there = weak.lock();
    if (still_there == nullptr || still_there->timer_ns() != next) return;
    still_there->timer_ns() = Link::kNever;
    serve(still_there);
  });
}

}  // namespace beeline
