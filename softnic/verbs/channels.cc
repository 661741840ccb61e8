// SPDX-License-Identifier: Apache-2.0
// The verbs for completion channels.
#include <cerrno>

#include "softnic/nic/comp_channel.h"
#include "softnic/nic/cq.h"
#include "softnic/verbs/call_checks.h"

using softnic::CompChannel;
using softnic::Context;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return softnic::is_dead(context) ? nullptr : CompChannel::create(Context::of(context));
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  CompChannel& ours = CompChannel::of(channel);
  if (softnic::is_inherited(channel->context)) return 0;
  pthread_mutex_lock(&channel->context->mutex);
  const bool used = channel->refcnt != 0;
  pthread_mutex_unlock(&channel->context->mutex);
  if (used) return EBUSY;
  delete &ours;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  return CompChannel::of(channel).next_event(cq, cq_context);
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned int count) {
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}

}  // extern "C"
