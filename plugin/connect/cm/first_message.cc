// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/cm/first_message.h"

#include <algorithm>

#include "common/check/assert.h"
#include "plugin/verbs/check.h"
#include "plugin/verbs/text.h"

namespace beeline {
namespace {

constexpr std::uint64_t kReceiveId = 1;

Status post(const PathSetup& path, ibv_send_wr& work, const char* what) {
  ibv_send_wr* refused = nullptr;
  return verbs::from_errno(ibv_post_send(path.qp().get(), &work, &refused), what);
}

}  // namespace

Status FirstMessage::post_receive() {
  if (has_posted_receive_) return {};
  ibv_sge scratch = path_->scratch();
  ibv_recv_wr receive = {};
  receive.wr_id = kReceiveId;
  receive.sg_list = &scratch;
  receive.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  BL_TRY(verbs::from_errno(ibv_post_recv(path_->qp().get(), &receive, &refused),
                           "post the receive of the first message"));
  has_posted_receive_ = true;
  return {};
}

Status FirstMessage::send() {
  BL_ASSERT(!has_sent_, "the first message is sent once");
  ibv_sge scratch = path_->scratch();
  ibv_send_wr work = {};
  work.sg_list = &scratch;
  work.num_sge = 1;
  work.opcode = IBV_WR_SEND;
  work.send_flags = IBV_SEND_SIGNALED;
  BL_TRY(post(*path_, work, "send the first message"));
  has_sent_ = true;
  ++outstanding_;
  next_write_ns_ = now_ns() + interval_ns_;
  return {};
}

Outcome<bool> FirstMessage::proceed(std::int64_t now) {
  while (BL_TRY(take_completion())) {
  }
  if (has_received_ && !has_sent_) BL_TRY(send());
  if (is_write_due(now)) BL_TRY(write_nothing(now));
  return has_received_ && outstanding_ == 0;
}

// False: none is there.
Outcome<bool> FirstMessage::take_completion() {
  ibv_wc completion = {};
  const int found = ibv_poll_cq(path_->cq(), 1, &completion);
  if (found < 0) return fail(Errc::kSystem, "poll the completion queue for the first message");
  if (found == 0) return false;
  if (completion.status != IBV_WC_SUCCESS) {
    return fail(
        std::string("the first message over the new connection, or the answer to it, failed: ") +
        verbs::wc_status_text(completion.status));
  }
  if (completion.wr_id == kReceiveId) {
    has_received_ = true;
  } else {
    --outstanding_;
  }
  return true;
}

// While an earlier request has not completed, its data has not all been sent, and another one would
// not help. The queue pair has been in RTS since an earlier one has completed.
bool FirstMessage::is_write_due(std::int64_t now) const noexcept {
  return end_ == End::kConnecting && path_->device().transport == Transport::kIwarp && has_sent_ &&
         !has_received_ && outstanding_ == 0 && now >= next_write_ns_;
}

// No remote address and no key: a peer does not look at those of a write of zero bytes.
Status FirstMessage::write_nothing(std::int64_t now) {
  BL_ASSERT(outstanding_ == 0, "there is one request at a time in the send queue");
  ibv_send_wr work = {};
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  BL_TRY(post(*path_, work, "write zero bytes, so that the peer reads the first message"));
  ++outstanding_;
  ++writes_;
  interval_ns_ = std::min(2 * interval_ns_, kMostNs);
  next_write_ns_ = now + interval_ns_;
  return {};
}

std::string FirstMessage::waiting_text() const {
  const bool connects = end_ == End::kConnecting;
  const std::string awaited = has_received_ ? "the completion of " : "";
  const std::string answer = connects != has_received_ ? "the answer to " : "";
  return "waiting for " + awaited + answer + "the first message over the new connection";
}

}  // namespace beeline
