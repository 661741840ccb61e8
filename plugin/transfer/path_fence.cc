// SPDX-License-Identifier: Apache-2.0
//
// Takes a failed path out of use. Its queue pair is moved to ERROR, so that its device discards
// whatever still comes for it: data or grants that were under way can no longer change memory. What
// came before is in the completion queue. Two work requests that are posted afterwards, one on each
// queue, are completed behind it as flushed.
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"
#include "plugin/verbs/check.h"

namespace beeline {

Status Comm::fence(std::size_t index) {
  DataPath& path = path_at(index);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  const verbs::Qp& qp = connection_.paths[index].queues.qp;
  BL_TRY(verbs::from_errno(qp.api().modify_qp(path.qp, &attr, IBV_QP_STATE),
                           "move a queue pair to ERROR"));
  path.is_up = false;
  leave_path(path);
  ibv_send_wr send = {};
  send.wr_id = kFenceMarker;
  send.opcode = IBV_WR_RDMA_WRITE;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* refused_send = nullptr;
  BL_TRY(verbs::from_errno(ibv_post_send(path.qp, &send, &refused_send), "post the end of sends"));
  ++path.markers;
  ibv_recv_wr receive = {};
  receive.wr_id = kFenceMarker;
  ibv_recv_wr* refused_receive = nullptr;
  BL_TRY(verbs::from_errno(ibv_post_recv(path.qp, &receive, &refused_receive),
                           "post the end of receives"));
  ++path.markers;
  return {};
}

bool Comm::is_fenced(std::size_t index) {
  const DataPath& path = path_at(index);
  if (path.is_up) return false;
  if (path.markers != 0) collect();
  return path.markers == 0;
}

}  // namespace beeline
