// SPDX-License-Identifier: Apache-2.0
//
// The work requests of the sends of one path that have been accepted and not posted yet: those of
// messages for an irecv of several buffers. They are posted together, so that the device is
// notified once, and only the last is signaled. NCCL tests each request, and a test posts what is
// held, so no message waits longer than for the next test.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/base/hot.h"
#include "plugin/transfer/request.h"
#include "plugin/transfer/work_id.h"
#include "plugin/wire/limits.h"

namespace beeline {

// Only the fields that change are written for each send.
struct PreparedSend {
  PreparedSend() noexcept {
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  }
  PreparedSend(const PreparedSend&) = delete;
  PreparedSend& operator=(const PreparedSend&) = delete;
  // The other's message, unsignaled.
  void take(const PreparedSend& other) noexcept {
    wr.wr_id = other.wr.wr_id;
    wr.send_flags = other.wr.send_flags & ~unsigned{IBV_SEND_SIGNALED};
    wr.imm_data = other.wr.imm_data;
    wr.wr.rdma = other.wr.wr.rdma;
    sge = other.sge;
  }

  ibv_sge sge{};
  ibv_send_wr wr{};
};

class HeldSends {
 public:
  HeldSends() noexcept {
    for (std::size_t i = 0; i + 1 < sends_.size(); ++i) sends_[i].wr.next = &sends_[i + 1].wr;
  }
  HeldSends(const HeldSends&) = delete;
  HeldSends& operator=(const HeldSends&) = delete;

  // Where the next send is prepared, unsignaled.
  PreparedSend& next() noexcept { return *next_; }
  bool empty() const noexcept { return next_ == sends_.data(); }
  bool full() const noexcept { return next_ == sends_.data() + wire::kMaxReceives; }

  // Holds the prepared send of this request.
  BL_INLINED void hold(Request& request) noexcept {
    ++next_;
    request.next = last_;
    last_ = &request;
  }

  // If something is held: posts all of it. Returns 0, or the errno of ibv_post_send: then the
  // device may have taken a part.
  int post(ibv_qp* qp) noexcept {
    ibv_send_wr& last = (next_ - 1)->wr;
    ibv_send_wr* const after_last = std::exchange(last.next, nullptr);
    last.send_flags |= IBV_SEND_SIGNALED;
    last.wr_id |= work_id::kSeveral;
    drop();
    ibv_send_wr* refused = nullptr;
    const int rc = ibv_post_send(qp, &sends_.front().wr, &refused);
    last.next = after_last;
    return rc;
  }
  // Forgets what is held. The requests stay unfinished.
  void drop() noexcept {
    next_ = sends_.data();
    last_ = nullptr;
  }

 private:
  // One more than can be held, so that there is always a next one.
  std::array<PreparedSend, wire::kMaxReceives + 1> sends_;
  PreparedSend* next_ = sends_.data();
  Request* last_ = nullptr;  // of those that are held
};

}  // namespace beeline
