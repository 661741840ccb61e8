// SPDX-License-Identifier: Apache-2.0
//
// Faults of one path of a TransferRig.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "tests/component/poll_hook.h"
#include "tests/component/transfer_rig.h"
#include "tests/support/must.h"

namespace beeline::test {

// Moves the queue pair of the path to ERROR, as the device does after a broken link or a failure,
// or as the peer's fence does.
inline void break_path(const Comm& comm, std::size_t path) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  BL_MUST(ibv_modify_qp(comm.paths()[path].resources->queues.qp.get(), &attr, IBV_QP_STATE) == 0);
}

// The path's data arrives, and its notices do not. There can be only one at a time.
class NoticeLoss {
 public:
  NoticeLoss(const Comm& sender, std::size_t path)
      : context_(sender.paths()[path].resources->queues.qp->context) {
    qp_ = sender.paths()[path].resources->queues.qp.get();
    real_ = std::exchange(context_->ops.post_send, &call);
  }
  NoticeLoss(const NoticeLoss&) = delete;
  NoticeLoss& operator=(const NoticeLoss&) = delete;
  ~NoticeLoss() { context_->ops.post_send = real_; }

 private:
  static int call(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** refused) {
    if (qp != qp_) return real_(qp, work, refused);
    ibv_send_wr** link = &work;
    while (*link != nullptr && (*link)->opcode != IBV_WR_SEND) link = &(*link)->next;
    *link = nullptr;
    return work == nullptr ? 0 : real_(qp, work, refused);
  }

  ibv_context* context_;
  static inline const ibv_qp* qp_ = nullptr;
  static inline int (*real_)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
};

// A path's writes and sends arrive, and their completions say that they failed.
inline PollHook::Hook without_acks(const Comm& sender, std::size_t path,
                                   ibv_wc_status status = IBV_WC_RETRY_EXC_ERR) {
  const ibv_cq* const lossy = sender.paths()[path].resources->queues.cq.get();
  return [=](ibv_cq* cq, int most, ibv_wc* completions) {
    const int found = PollHook::real(cq, most, completions);
    for (int i = 0; cq == lossy && i < found; ++i) {
      ibv_wc& one = completions[i];
      if (one.status == IBV_WC_SUCCESS) one.status = status;
    }
    return found;
  };
}

// Queue pairs in ERROR get no completion for the receive that a fence posts: it is refused with
// this errno, or accepted and forgotten (0). There can be only one at a time.
class ForgottenReceives {
 public:
  ForgottenReceives(const Comm& comm, int rc)
      : context_(comm.paths()[0].resources->queues.qp->context) {
    rc_ = rc;
    real_ = std::exchange(context_->ops.post_recv, &call);
  }
  ForgottenReceives(const ForgottenReceives&) = delete;
  ForgottenReceives& operator=(const ForgottenReceives&) = delete;
  ~ForgottenReceives() { context_->ops.post_recv = real_; }

 private:
  static int call(ibv_qp* qp, ibv_recv_wr* work, ibv_recv_wr** refused) {
    return work->wr_id == work_id::kFence ? rc_ : real_(qp, work, refused);
  }

  ibv_context* context_;
  static inline int rc_ = 0;
  static inline int (*real_)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) = nullptr;
};

}  // namespace beeline::test
