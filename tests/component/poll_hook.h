// SPDX-License-Identifier: Apache-2.0
//
// A test's hand between a comm and its completion queue.
#pragma once

#include <functional>
#include <utility>

#include "plugin/transfer/comm.h"

namespace beeline::test {

// One at a time. Both ends of the rig share one device context, and so the hook.
class PollHook {
 public:
  using Hook = std::function<int(ibv_cq*, int, ibv_wc*)>;

  PollHook(const Comm& comm, Hook hook) : context_(comm.paths()[0].queues.cq->context) {
    hook_ = std::move(hook);
    real_ = std::exchange(context_->ops.poll_cq, &call);
  }
  PollHook(const PollHook&) = delete;
  PollHook& operator=(const PollHook&) = delete;
  ~PollHook() { context_->ops.poll_cq = real_; }

  static int real(ibv_cq* cq, int room, ibv_wc* into) { return real_(cq, room, into); }

 private:
  static int call(ibv_cq* cq, int room, ibv_wc* into) { return hook_(cq, room, into); }

  ibv_context* context_;
  static inline Hook hook_;
  static inline int (*real_)(ibv_cq*, int, ibv_wc*) = nullptr;
};

}  // namespace beeline::test
