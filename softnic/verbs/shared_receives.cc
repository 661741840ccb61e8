// SPDX-License-Identifier: Apache-2.0
// The verbs for shared receive queues. Posting is in the operations table of the context.
#include <cerrno>

#include "softnic/nic/srq.h"
#include "softnic/verbs/call_checks.h"

using softnic::Context;
using softnic::is_dead;
using softnic::is_inherited;
using softnic::Pd;
using softnic::Srq;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  return is_dead(pd->context) ? nullptr : Srq::create(Pd::of(pd), *init);
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  const int refusal = softnic::refusal_to_change(srq->context);
  return refusal != 0 ? refusal : Srq::of(srq).modify(*attr, mask);
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  if (Context::of(srq->context).is_dead()) return EIO;
  *attr = Srq::of(srq).query();
  return 0;
}

int ibv_destroy_srq(ibv_srq* srq) {
  Srq& ours = Srq::of(srq);
  if (is_inherited(srq->context)) return 0;
  if (ours.users.load() != 0) return EBUSY;
  delete &ours;
  return 0;
}

}  // extern "C"
