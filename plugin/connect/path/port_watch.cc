// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/path/port_watch.h"

#include <algorithm>
#include <set>

#include "common/base/clock.h"
#include "common/base/log.h"

namespace beeline {
namespace {

// Between two looks for a device that is gone.
constexpr std::int64_t kLongestLookNs = kNsPerSec;
// The same, if it is there and has no link: connections wait for the link.
constexpr std::int64_t kLinkLookNs = 100 * kNsPerMs;

std::string event_text(const DeviceContext& context, const verbs::AsyncEvent& event) {
  std::string text = "device " + context.ibdev();
  if (event.port != 0) text += " port " + std::to_string(event.port);
  if (event.qp_num != 0) text += " qp " + std::to_string(event.qp_num);
  if (event.kind == verbs::EventKind::kDeviceFatal) {
    return text + " was removed from this host, or has failed for good (" + event.text +
           "): connections that have no other device wait for it (BEELINE_DEVICE_WAIT)";
  }
  return text + ": " + event.text;
}

}  // namespace

PortWatch::PortWatch(const DeviceTable& table, Poller& poller, PortEvents& events)
    : table_(&table), poller_(&poller), events_(&events) {
  std::set<const DeviceContext*> gone;
  for (const Device& device : table.devices()) {
    const DeviceContext* const context = device.newest().context;
    if (!context->is_gone() || !gone.insert(context).second) continue;
    look_for(*context, delays_.after_failure(context->ibdev(), now_ns()));
  }
}

PortWatch::~PortWatch() {
  for (const auto& [context, key] : watched_) poller_->remove(context->raw()->async_fd, key);
}

Result<const PortFacts*> PortWatch::facts(const Device& device) {
  watch(*device.context);
  if (device.context->is_gone()) {
    return fail(Errc::kSystem, "use a device that was removed from this host, or failed for good");
  }
  const auto known = facts_.find(&device);
  if (known != facts_.end()) return &known->second;
  PortFacts read = BL_TRY(table_->read_port(device));
  return &facts_.insert_or_assign(&device, std::move(read)).first->second;
}

void PortWatch::watch(DeviceContext& context) {
  if (watched_.contains(&context)) return;
  Status ready = verbs::make_events_nonblocking(context.raw());
  if (ready) {
    const auto key = poller_->add(context.raw()->async_fd, EPOLLIN,
                                  [this, &context](std::uint32_t) { read_events(context); });
    if (key) {
      watched_.emplace(&context, *key);
      read_events(context);  // events from before the watch
      return;
    }
    ready = fail(key.error());
  }
  BL_WARN_LIMITED(
      1,
      "device %s: its asynchronous events cannot be watched, so a failed port is noticed later: %s",
      context.ibdev().c_str(), describe(ready.error()).c_str());
}

void PortWatch::read_events(DeviceContext& context) {
  for (;;) {
    const auto event = verbs::next_event(context.api(), context.raw());
    if (!event) {
      if (!context.is_gone())
        BL_WARN(
            "device %s: its asynchronous events cannot be read any more, so a failed port is "
            "noticed "
            "later: %s",
            context.ibdev().c_str(), describe(event.error()).c_str());
      poller_->remove(context.raw()->async_fd, watched_[&context]);
      return;
    }
    if (!*event) return;
    handle(context, **event);
  }
}

void PortWatch::handle(DeviceContext& context, const verbs::AsyncEvent& event) {
  if (event.kind == verbs::EventKind::kOther || context.is_gone()) return;
  // The warning about a port, together with what its connections do, comes from PathLog. That about
  // a queue pair comes from the connection, if it was not the peer who has aborted: the WRITEs that
  // were under way to its memory fail then, on a sound device.
  const std::string text = event_text(context, event);
  if (event.kind == verbs::EventKind::kCqError) {
    BL_WARN("%s", text.c_str());
  } else {
    BL_INFO(kLogNet, "%s", text.c_str());
  }
  const std::int64_t now = now_ns();
  table_->each_port_of(context, [&](const Device& device) {
    facts_.erase(&device);  // the stored facts about the device's ports may be outdated
    if (device.port == event.port) device.history->record(event.kind, now);
  });
  if (event.kind == verbs::EventKind::kDeviceFatal) {
    context.set_gone();
    look_for(context, delays_.after_failure(context.ibdev(), now));
  }
  events_->on_device_event(context, event);
}

// No event tells a process that a device has come.
void PortWatch::look_for(const DeviceContext& gone, std::int64_t delay_ns) {
  poller_->at(now_ns() + delay_ns, [this, &gone, delay_ns] {
    const std::int64_t again_ns = find_again(gone, delay_ns);
    if (again_ns != 0) look_for(gone, again_ns);
  });
}

std::int64_t PortWatch::find_again(const DeviceContext& gone, std::int64_t delay_ns) {
  const Result<DeviceTable::Reopened> found = table_->reopen(gone);
  if (!found) {
    BL_INFO(kLogNet, "device %s cannot be opened again yet: %s", gone.ibdev().c_str(),
            describe(found.error()).c_str());
  }
  if (found && found->lacks_link) return kLinkLookNs;
  if (!found || found->context == nullptr) return std::min(2 * delay_ns, kLongestLookNs);
  DeviceContext& back = *found->context;
  BL_INFO(kLogNet, "device %s is back on this host and was opened again", gone.ibdev().c_str());
  const std::int64_t now = now_ns();
  delays_.opened(gone.ibdev(), now);
  table_->each_port_of(back, [now](const Device& device) {
    if (device.facts.is_active()) device.history->record(verbs::EventKind::kPortActive, now);
  });
  watch(back);
  events_->on_device_back(back);
  return 0;
}

}  // namespace beeline
