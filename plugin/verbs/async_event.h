// SPDX-License-Identifier: Apache-2.0
//
// Reads the asynchronous events of an open device without blocking.
//
// Threads: one reader for each context, the control thread. An event of a QP or CQ is acknowledged
// before it is returned, so that destroying the object never waits for the reader.
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
  kSmChange,     // also a request to register again with the subnet manager
  kDeviceFatal,  // the device cannot be used any more
  kCqError,      // the CQ has overrun and has no more completions
  kQpFatal,      // the QP is in ERROR
  kOther,        // not a fault: communication established, path migrated ...
};
inline constexpr std::size_t kEventKinds = static_cast<std::size_t>(EventKind::kOther) + 1;

struct AsyncEvent {
  EventKind kind = EventKind::kOther;
  ibv_event_type type = IBV_EVENT_COMM_EST;
  std::uint8_t port = 0;     // 0: the event is not about a port
  std::uint32_t qp_num = 0;  // 0: the event is not about a QP
  const void* cq = nullptr;  // of kCqError: the ibv_cq, only to compare it with
  const char* text = "";     // a literal: "port error"
};

// Must be called once for each context before context->async_fd is polled.
Status make_events_nonblocking(ibv_context* context);

// Nothing if there is no event. Call it until then, because epoll may be edge-triggered.
Result<std::optional<AsyncEvent>> next_event(const Api& api, ibv_context* context);

}  // namespace beeline::verbs
