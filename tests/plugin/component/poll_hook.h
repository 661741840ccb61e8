// SPDX-License-Identifier: Apache-2.0
//
// Replaces ibv_poll_cq of a comm, so that a test can change or delay its completions.
#pragma once

#include <functional>
#include <utility>

#include "plugin/transfer/comm.h"

namespace beeline::test {

// There can be only one at a time. It affects both ends of the rig, which share a device context.
class PollHook {
 public:
  using Hook = std::function<int(ibv_cq*, int, ibv_wc*)>;

  PollHook(const Comm& comm, Hook hook) : context_(comm.paths()[0].resources->queues.cq->context) {
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
