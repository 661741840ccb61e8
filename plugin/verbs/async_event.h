// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous events of an open device, read without blocking.
//
// Threads: one reader per context, which is the control thread. An event of a QP or CQ is
// acknowledged before it is returned, so destroying the object never waits for its reader.
#pragma once

#include <cstdint>
#include <optional>

#include "plugin/verbs/handles.h"

namespace beeline::verbs {

enum class EventKind : std::uint8_t {
  kPortActive,
  kPortError,
  kGidChange,
  kPkeyChange,
  kLidChange,
  kSmChange,     // also a request to register again with it
  kDeviceFatal,  // the device is gone, with everything on it
  kCqError,      // overrun: nothing more comes from that CQ
  kQpFatal,      // the QP is in ERROR
  kOther,        // says nothing about health: communication established, path migrated ...
};

struct AsyncEvent {
  EventKind kind = EventKind::kOther;
  ibv_event_type type = IBV_EVENT_COMM_EST;  // as it came
  std::uint8_t port = 0;                     // of the kinds about a port, else 0
  std::uint32_t qp_num = 0;                  // of events about a QP
  const void* cq = nullptr;                  // of kCqError: the ibv_cq, to compare with only
  const char* text = "";                     // a literal: "port error"
};

// Once per context, before its descriptor is polled. The descriptor is context->async_fd.
Status make_events_nonblocking(ibv_context* context);

// Nothing when no event waits. Call until then: epoll may be edge-triggered.
Result<std::optional<AsyncEvent>> next_event(const Api& api, ibv_context* context);

}  // namespace beeline::verbs
