// SPDX-License-Identifier: Apache-2.0
//
// A queue pair whose program sleeps on a completion channel.
#pragma once

#include <string>

#include "tests/support/verbs_extras.h"

namespace beeline::test {

inline void arm(ibv_cq* cq, int solicited_only = 0) {
  BL_MUST_OK(ibv_req_notify_cq(cq, solicited_only));
}

// Sends and receives have a completion queue each, on one channel.
struct Sleeper {
  explicit Sleeper(const std::string& device, const QpShape& shape = {})
      : context(open_device(device)),
        pd(ibv_alloc_pd(context.get())),
        channel(make_channel(context.get())),
        send_cq(make_cq(channel.get(), shape.cqe, &send_tag)),
        recv_cq(make_cq(channel.get(), shape.cqe, &recv_tag)) {
    owned_qp = make_qp(send_cq, recv_cq, shape);
    qp = owned_qp.get();
  }

  QpPtr make_qp(const CqPtr& sends, const CqPtr& receives, const QpShape& shape = {}) const {
    ibv_qp_init_attr attr{};
    attr.send_cq = sends.get();
    attr.recv_cq = receives.get();
    attr.cap = {shape.send_depth, shape.recv_depth, 1, 1, 64};
    attr.qp_type = IBV_QPT_RC;
    QpPtr made(ibv_create_qp(pd.get(), &attr));
    BL_MUST(made != nullptr);
    return made;
  }
  void must_wake_for(const CqPtr& cq) {
    BL_MUST(next_cq_event(channel.get()) == cq.get());
    ibv_ack_cq_events(cq.get(), 1);
  }

  int send_tag = 0;
  int recv_tag = 0;
  ContextPtr context;
  PdPtr pd;
  ChannelPtr channel;
  CqPtr send_cq;
  CqPtr recv_cq;
  QpPtr owned_qp;
  ibv_qp* qp;
};

}  // namespace beeline::test
