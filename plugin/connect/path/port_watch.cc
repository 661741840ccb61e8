// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/path/port_watch.h"

#include "common/base/clock.h"
#include "common/base/log.h"

namespace beeline {
namespace {

bool is_failure(verbs::EventKind kind) {
  switch (kind) {
    case verbs::EventKind::kPortError:
    case verbs::EventKind::kDeviceFatal:
    case verbs::EventKind::kCqError: return true;
    // The completions of the connection report the cause. A peer that aborts deregisters its memory
    // first, so that WRITEs under way fail; the device is sound.
    case verbs::EventKind::kQpFatal:
    case verbs::EventKind::kPortActive:
    case verbs::EventKind::kGidChange:
    case verbs::EventKind::kPkeyChange:
    case verbs::EventKind::kLidChange:
    case verbs::EventKind::kSmChange:
    case verbs::EventKind::kOther: return false;
  }
  return false;
}

std::string event_text(const DeviceContext& context, const verbs::AsyncEvent& event) {
  std::string text = "device " + context.ibdev();
  if (event.port != 0) text += " port " + std::to_string(event.port);
  if (event.qp_num != 0) text += " qp " + std::to_string(event.qp_num);
  if (event.kind == verbs::EventKind::kDeviceFatal) {
    return text + " was removed from this host, or has failed for good (" + event.text +
           "): connections that have no other device end, and this process does not use it again";
  }
  return text + ": " + event.text;
}

}  // namespace

PortWatch::~PortWatch() {
  for (const auto& [context, key] : watched_) poller_->remove(context->raw()->async_fd, key);
}

Result<const PortFacts*> PortWatch::facts(const Device& device) {
  watch(*device.context);
  if (device.context->is_gone()) {
    return fail(Errc::kSystem, "use a device that was removed from this host, or failed for good");
  }
  const auto known = facts_.find(device.index);
  if (known != facts_.end()) return &known->second;
  PortFacts read = BL_TRY(table_->read_port(device));
  return &facts_.insert_or_assign(device.index, std::move(read)).first->second;
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
  const std::string text = event_text(context, event);
  if (is_failure(event.kind)) {
    BL_WARN("%s", text.c_str());
  } else {
    BL_INFO(kLogNet, "%s", text.c_str());
  }
  const std::int64_t now = now_ns();
  for (const Device& device : table_->devices()) {
    if (device.context != &context) continue;
    facts_.erase(device.index);  // the stored facts about the device's ports may be outdated
    if (device.port == event.port) device.history->record(event.kind, now);
  }
  if (event.kind == verbs::EventKind::kDeviceFatal) context.set_gone();
  events_->on_device_event(context, event);
}

}  // namespace beeline
