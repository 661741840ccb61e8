// SPDX-License-Identifier: Apache-2.0
#include "bench/support/endpoint.h"

#include <algorithm>

#include "tests/support/must.h"

namespace beeline::bench {
namespace {

constexpr uint8_t kPort = 1;
constexpr uint32_t kFirstPsn = 0x1234;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
// 4.096 us * 2^13 = 34 ms from one try to the next, eight tries: a link may be down for 200 ms.
constexpr uint8_t kTimeout = 13;
constexpr uint8_t kRetries = 7;

ibv_context* open_by_name(const std::string& name) {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  ibv_context* context = nullptr;
  for (int i = 0; i < count && context == nullptr; ++i) {
    if (ibv_get_device_name(devices[i]) == name) context = ibv_open_device(devices[i]);
  }
  if (devices != nullptr) ibv_free_device_list(devices);
  if (context == nullptr) {
    throw test::MustError("no RDMA device " + name + " here; start it as: softnic run -- PROGRAM");
  }
  return context;
}

ibv_qp* create_qp(ibv_pd* pd, ibv_cq* cq) {
  ibv_qp_init_attr init{};
  init.send_cq = cq;
  init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = kWritesAtATime;
  init.cap.max_send_sge = 1;
  init.cap.max_recv_wr = 1;
  init.cap.max_recv_sge = 1;
  init.cap.max_inline_data = kInlineBytes;
  return ibv_create_qp(pd, &init);
}

}  // namespace

Endpoint::Endpoint(const std::string& device, size_t bytes)
    : memory_(bytes), context_(open_by_name(device)) {
  pd_.reset(ibv_alloc_pd(context_.get()));
  BL_MUST(pd_ != nullptr);
  mr_.reset(ibv_reg_mr(pd_.get(), memory_.data(), memory_.size(), kAccess));
  BL_MUST(mr_ != nullptr);
  cq_.reset(
      ibv_create_cq(context_.get(), static_cast<int>(2 * kWritesAtATime), nullptr, nullptr, 0));
  BL_MUST(cq_ != nullptr);
  qp_.reset(create_qp(pd_.get(), cq_.get()));
  BL_MUST(qp_ != nullptr);
  BL_MUST_OK(ibv_query_port(context_.get(), kPort, &port_));
  choose_gid();
  info_.qp_num = qp_->qp_num;
  info_.lid = port_.lid;
  info_.address = reinterpret_cast<uint64_t>(memory_.data());
  info_.rkey = mr_->rkey;
}

// The last RoCE v2 GID, which is the one with the IP address; on InfiniBand the only one.
void Endpoint::choose_gid() {
  for (uint32_t i = 0; i < static_cast<uint32_t>(port_.gid_tbl_len); ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context_.get(), kPort, i, &entry, 0) != 0) continue;
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 && entry.gid_type != IBV_GID_TYPE_IB) continue;
    gid_index_ = i;
    info_.gid = entry.gid;
  }
}

void Endpoint::connect(test::Peer& line, size_t other) {
  line.send(other, info_);
  connect(line.receive<EndpointInfo>(other));
}

void Endpoint::connect(const EndpointInfo& peer) {
  peer_ = peer;
  connect(qp_.get(), peer);
}

void Endpoint::connect(ibv_qp* qp, const EndpointInfo& peer) {
  to_init(qp);
  to_rtr(qp, peer);
  to_rts(qp);
}

void Endpoint::to_init(ibv_qp* qp) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  attr.qp_access_flags = kAccess;
  BL_MUST_OK(ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

void Endpoint::to_rtr(ibv_qp* qp, const EndpointInfo& peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = port_.active_mtu;
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = kFirstPsn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.port_num = kPort;
  attr.ah_attr.dlid = peer.lid;
  if (port_.link_layer == IBV_LINK_LAYER_ETHERNET) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = peer.gid;
    attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index_);
    attr.ah_attr.grh.hop_limit = 64;
  }
  BL_MUST_OK(ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

void Endpoint::to_rts(ibv_qp* qp) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = kTimeout;
  attr.retry_cnt = kRetries;
  attr.rnr_retry = kRetries;
  attr.sq_psn = kFirstPsn;
  attr.max_rd_atomic = 1;
  BL_MUST_OK(ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

void Endpoint::post(const Write& write) {
  ibv_sge piece{};
  piece.addr = info_.address + write.from;
  piece.length = static_cast<uint32_t>(write.bytes);
  piece.lkey = mr_->lkey;
  ibv_send_wr work{};
  work.sg_list = &piece;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = write.flags;
  work.wr.rdma.remote_addr = peer_.address + write.to;
  work.wr.rdma.rkey = peer_.rkey;
  ibv_send_wr* bad = nullptr;
  BL_MUST_OK(ibv_post_send(qp_.get(), &work, &bad));
}

size_t Endpoint::poll(size_t most) {
  ibv_wc done[kWritesAtATime];
  const int room = static_cast<int>(std::min<size_t>(most, kWritesAtATime));
  const int count = ibv_poll_cq(cq_.get(), room, done);
  BL_MUST(count >= 0);
  for (int i = 0; i < count; ++i) {
    if (done[i].status != IBV_WC_SUCCESS) {
      throw test::MustError(std::string("a write failed: ") + ibv_wc_status_str(done[i].status));
    }
  }
  return static_cast<size_t>(count);
}

void Endpoint::wait_for(size_t completions) {
  size_t done = 0;
  while (done < completions) done += poll(completions - done);
}

}  // namespace beeline::bench
