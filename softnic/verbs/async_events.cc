// SPDX-License-Identifier: Apache-2.0
// Reading and acknowledging asynchronous events.
#include <unistd.h>

#include <cerrno>

#include "softnic/fabric/events.h"
#include "softnic/nic/cq.h"
#include "softnic/nic/event_acks.h"
#include "softnic/nic/qp.h"

namespace softnic {
namespace {

bool concerns_qp(ibv_event_type type) {
  return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
         type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_COMM_EST ||
         type == IBV_EVENT_SQ_DRAINED;
}

// Finds the object by its serial and counts the event, so that it cannot go away unacknowledged.
bool claim_qp(Runtime& runtime, const EventRecord& record, ibv_async_event& event) {
  bool found = false;
  runtime.for_each_qp([&](Qp& qp) {
    if (qp.serial() != record.serial) return;
    found = true;
    event.element.qp = &qp.qp_base;
    pthread_mutex_lock(&qp.qp_base.mutex);
    ++qp.async_reported;
    pthread_mutex_unlock(&qp.qp_base.mutex);
  });
  return found;
}

bool claim_cq(Runtime& runtime, const EventRecord& record, ibv_async_event& event) {
  bool found = false;
  runtime.for_each_cq([&](Cq& cq) {
    if (cq.serial() != record.serial) return;
    found = true;
    event.element.cq = &cq;
    pthread_mutex_lock(&cq.mutex);
    ++cq.async_reported;
    pthread_mutex_unlock(&cq.mutex);
  });
  return found;
}

// False: what the event was about is gone, and the event with it.
bool claim(Runtime& runtime, const EventRecord& record, ibv_async_event& event) {
  event.event_type = static_cast<ibv_event_type>(record.type);
  if (concerns_qp(event.event_type)) return claim_qp(runtime, record, event);
  if (event.event_type == IBV_EVENT_CQ_ERR) return claim_cq(runtime, record, event);
  event.element.port_num = static_cast<int>(record.element);
  return true;
}

}  // namespace
}  // namespace softnic

using softnic::Context;
using softnic::EventRecord;

extern "C" {

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  Context& opened = Context::of(context);
  for (;;) {
    EventRecord record;
    const ssize_t got = ::read(context->async_fd, &record, sizeof record);
    if (got != sizeof record) return -1;
    opened.runtime->attend();
    if (softnic::claim(*opened.runtime, record, *event)) return 0;
  }
}

void ibv_ack_async_event(ibv_async_event* event) {
  if (softnic::concerns_qp(event->event_type)) {
    ibv_qp* qp = event->element.qp;
    softnic::acknowledge(qp->mutex, qp->cond, qp->events_completed);
  } else if (event->event_type == IBV_EVENT_CQ_ERR) {
    ibv_cq* cq = event->element.cq;
    softnic::acknowledge(cq->mutex, cq->cond, cq->async_events_completed);
  }
}

}  // extern "C"
