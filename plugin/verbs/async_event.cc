// SPDX-License-Identifier: Apache-2.0
#include "plugin/verbs/async_event.h"

#include <fcntl.h>

#include "plugin/verbs/check.h"
#include "plugin/verbs/text.h"

namespace beeline::verbs {
namespace {

enum class Subject : std::uint8_t { kPort, kQp, kCq, kOther };

struct Meaning {
  EventKind kind;
  Subject subject;  // the valid member of the event's union
};

// Not a switch over the enumeration, because newer kernels send types that the headers do not have.
Meaning meaning_of(ibv_event_type type) noexcept {
  switch (static_cast<int>(type)) {
    case IBV_EVENT_PORT_ACTIVE: return {EventKind::kPortActive, Subject::kPort};
    case IBV_EVENT_PORT_ERR: return {EventKind::kPortError, Subject::kPort};
    case IBV_EVENT_GID_CHANGE: return {EventKind::kGidChange, Subject::kPort};
    case IBV_EVENT_PKEY_CHANGE: return {EventKind::kPkeyChange, Subject::kPort};
    case IBV_EVENT_LID_CHANGE: return {EventKind::kLidChange, Subject::kPort};
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER: return {EventKind::kSmChange, Subject::kPort};
    case IBV_EVENT_DEVICE_FATAL: return {EventKind::kDeviceFatal, Subject::kOther};
    case IBV_EVENT_CQ_ERR: return {EventKind::kCqError, Subject::kCq};
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR: return {EventKind::kQpFatal, Subject::kQp};
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: return {EventKind::kOther, Subject::kQp};
    default: return {EventKind::kOther, Subject::kOther};
  }
}

// Copies the data, because the object may be destroyed once the event is acknowledged.
AsyncEvent copy_of(const ibv_async_event& raw) noexcept {
  const Meaning meaning = meaning_of(raw.event_type);
  AsyncEvent event{
      .kind = meaning.kind, .type = raw.event_type, .text = event_text(raw.event_type)};
  switch (meaning.subject) {
    case Subject::kPort: event.port = static_cast<std::uint8_t>(raw.element.port_num); break;
    case Subject::kQp: event.qp_num = raw.element.qp->qp_num; break;
    case Subject::kCq: event.cq = raw.element.cq; break;
    case Subject::kOther: break;
  }
  return event;
}

}  // namespace

Status make_events_nonblocking(ibv_context* context) {
  const int flags = ::fcntl(context->async_fd, F_GETFL);
  if (flags < 0 || ::fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return fail_errno("make the device's event descriptor non-blocking");
  }
  return {};
}

Result<std::optional<AsyncEvent>> next_event(const Api& api, ibv_context* context) {
  ibv_async_event raw = {};
  errno = 0;
  if (const Status got = from_minus_one(api.get_async_event(context, &raw), "read a device event");
      !got) {
    const int why = got.error().sys_errno;
    if (why == EAGAIN || why == EINTR) return std::optional<AsyncEvent>();
    return fail(got.error());
  }
  const AsyncEvent event = copy_of(raw);
  api.ack_async_event(&raw);
  return std::optional(event);
}

}  // namespace beeline::verbs
