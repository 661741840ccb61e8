// SPDX-License-Identifier: Apache-2.0
// ibv_get_async_event and ibv_ack_async_event.
#include <unistd.h>

#include <cerrno>

#include "softnic/fabric/events.h"
#include "softnic/nic/context.h"
#include "softnic/nic/cq.h"
#include "softnic/nic/event_acks.h"
#include "softnic/nic/qp.h"

namespace softnic {
namespace {

bool is_qp_event(ibv_event_type type) {
  return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
         type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_COMM_EST ||
         type == IBV_EVENT_SQ_DRAINED || type == IBV_EVENT_PATH_MIG ||
         type == IBV_EVENT_PATH_MIG_ERR || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

bool is_srq_event(ibv_event_type type) {
  return type == IBV_EVENT_SRQ_LIMIT_REACHED || type == IBV_EVENT_SRQ_ERR;
}

// Finds the object by its serial number and counts the event, so that the object cannot be
// destroyed before the event is acknowledged. Returns null if it was destroyed.
template <class T>
T* claim_object(ObjectList<T>& list, const EventRecord& record, pthread_mutex_t& (*mutex_of)(T&)) {
  T* found = nullptr;
  list.for_each([&](T& object) {
    if (object.serial() != record.serial) return;
    found = &object;
    pthread_mutex_t& mutex = mutex_of(object);
    pthread_mutex_lock(&mutex);
    ++object.async_reported;
    pthread_mutex_unlock(&mutex);
  });
  return found;
}

bool claim_qp(Runtime& runtime, const EventRecord& record, ibv_async_event& event) {
  Qp* const qp = claim_object<Qp>(runtime.qps(), record,
                                  [](Qp& one) -> pthread_mutex_t& { return one.qp_base.mutex; });
  if (qp != nullptr) event.element.qp = &qp->qp_base;
  return qp != nullptr;
}

bool claim_cq(Runtime& runtime, const EventRecord& record, ibv_async_event& event) {
  Cq* const cq = claim_object<Cq>(runtime.cqs(), record,
                                  [](Cq& one) -> pthread_mutex_t& { return one.mutex; });
  if (cq != nullptr) event.element.cq = cq->plain();
  return cq != nullptr;
}

// By a command: a queue pair that is in use breaks in each open context.
bool break_any_qp(Context& context, ibv_async_event& event) {
  EventRecord record;
  context.runtime->qps().for_each([&](const Qp& qp) {
    const bool is_its = &Context::of(qp.qp_base.context) == &context && qp.state() == IBV_QPS_RTS;
    if (record.serial == 0 && is_its) record.serial = qp.serial();
  });
  if (record.serial == 0 || !claim_qp(*context.runtime, record, event)) return false;
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  (void)ibv_modify_qp(event.element.qp, &attr, IBV_QP_STATE);
  return true;
}

// The same: a completion queue has no more completions.
bool break_any_cq(Context& context, ibv_async_event& event) {
  EventRecord record;
  context.runtime->cqs().for_each([&](const Cq& cq) {
    if (record.serial != 0 || &Context::of(cq.context) != &context) return;
    record.serial = cq.serial();
    cq.record().overrun.store(1);
  });
  return record.serial != 0 && claim_cq(*context.runtime, record, event);
}

bool claim_srq(Runtime& runtime, const EventRecord& record, ibv_async_event& event) {
  Srq* const srq = claim_object<Srq>(runtime.srqs(), record,
                                     [](Srq& one) -> pthread_mutex_t& { return one.mutex; });
  event.element.srq = srq;
  return srq != nullptr;
}

// A context gets events of its ports and device up to the removal of the device, but not after the
// device is back. If the process that should have sent the removal event died, the event of a later
// removal takes its place.
bool is_in_lifetime(Context& context, const EventRecord& record) {
  if (record.serial == context.removals_at_open) return true;
  return record.serial > context.removals_at_open && record.type == IBV_EVENT_DEVICE_FATAL &&
         !context.removal_reported.exchange(true);
}

// Fills in the event. Returns false if its object no longer exists; the event is then dropped.
bool claim(Context& context, const EventRecord& record, ibv_async_event& event) {
  Runtime& runtime = *context.runtime;
  event.event_type = static_cast<ibv_event_type>(record.type);
  const bool is_by_command = record.serial <= UINT32_MAX;  // those of objects are larger
  if (is_by_command && event.event_type == IBV_EVENT_QP_FATAL) return break_any_qp(context, event);
  if (is_by_command && event.event_type == IBV_EVENT_CQ_ERR) return break_any_cq(context, event);
  if (is_qp_event(event.event_type)) return claim_qp(runtime, record, event);
  if (is_srq_event(event.event_type)) return claim_srq(runtime, record, event);
  if (event.event_type == IBV_EVENT_CQ_ERR) return claim_cq(runtime, record, event);
  event.element.port_num = static_cast<int>(record.element);
  return is_in_lifetime(context, record);
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
    opened.runtime->flush_broken_qps();
    if (softnic::claim(opened, record, *event)) return 0;
  }
}

void ibv_ack_async_event(ibv_async_event* event) {
  if (softnic::is_qp_event(event->event_type)) {
    ibv_qp* qp = event->element.qp;
    softnic::acknowledge(qp->mutex, qp->cond, qp->events_completed);
  } else if (softnic::is_srq_event(event->event_type)) {
    ibv_srq* srq = event->element.srq;
    softnic::acknowledge(srq->mutex, srq->cond, srq->events_completed);
  } else if (event->event_type == IBV_EVENT_CQ_ERR) {
    ibv_cq* cq = event->element.cq;
    softnic::acknowledge(cq->mutex, cq->cond, cq->async_events_completed);
  }
}

}  // extern "C"
