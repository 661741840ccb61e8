// SPDX-License-Identifier: Apache-2.0
//
// The verbs calls of the simulated devices.
#include <cerrno>
#include <cstring>
#include <utility>

#include "tests/plugin/simulation/nic.h"

namespace beeline::simulation {
namespace {

constexpr std::uint32_t kMostInline = 256;
constexpr std::uint32_t kBytesOfPacket = 64 * 1024;
constexpr std::uint32_t kMostPackets = 4;  // of one work request

}  // namespace

// A struct, so that Nic can make one friend of all of them.
struct NicVerbs {
  static Nic& nic_of(ibv_context* context) { return *static_cast<NicContext*>(context)->nic; }
  static NicQp& qp_of(ibv_qp* qp) { return *static_cast<NicQp*>(qp); }

  template <class T>
  static T* refuse(int error) {
    errno = error;
    return nullptr;
  }

  // --- Queries ---

  static int query_port(ibv_context* context, std::uint8_t /*port*/, _compat_ibv_port_attr* out) {
    const Nic& nic = nic_of(context);
    if (nic.is_removed()) return ENODEV;
    auto* const attr = reinterpret_cast<ibv_port_attr*>(out);
    attr->state = nic.is_active() ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attr->max_mtu = attr->active_mtu = IBV_MTU_4096;
    attr->gid_tbl_len = 1;
    attr->pkey_tbl_len = 1;
    attr->link_layer = IBV_LINK_LAYER_ETHERNET;
    return 0;
  }
  static int query_gid(ibv_context* context, std::uint8_t /*port*/, int index, ibv_gid* gid) {
    const Nic& nic = nic_of(context);
    if (nic.is_removed() || index != 0) return -1;
    std::memcpy(gid->raw, nic.gid_.data(), sizeof gid->raw);
    return 0;
  }
  static int query_pkey(ibv_context* context, std::uint8_t /*port*/, int index, __be16* pkey) {
    if (nic_of(context).is_removed() || index != 0) return -1;
    *pkey = 0xffff;
    return 0;
  }

  // --- Objects ---

  static int close_device(ibv_context* /*context*/) { return 0; }
  static ibv_pd* alloc_pd(ibv_context* context) {
    auto* const pd = new ibv_pd{};
    pd->context = context;
    return pd;
  }
  static int dealloc_pd(ibv_pd* pd) {
    delete pd;
    return 0;
  }
  static ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
    Nic& nic = nic_of(pd->context);
    if (nic.is_removed()) return refuse<ibv_mr>(ENODEV);
    auto made = std::make_unique<NicRegion>();
    made->context = pd->context;
    made->pd = pd;
    made->addr = address;
    made->length = length;
    std::vector<std::unique_ptr<NicRegion>>& regions = nic.nics_.regions_;
    made->lkey = made->rkey =
        Nics::kFirstKey + static_cast<std::uint32_t>(regions.size()) * Nics::kKeyStep;
    made->nic = &nic;
    made->access = static_cast<unsigned>(access);
    // Memory of GPUs is registered so that flushes can read it.
    if (Payload::contains(reinterpret_cast<std::uint64_t>(address))) {
      made->access |= IBV_ACCESS_REMOTE_READ;
    }
    ++nic.objects_;
    return regions.emplace_back(std::move(made)).get();
  }
  static int dereg_mr(ibv_mr* region) {
    Nic& nic = nic_of(region->context);
    --nic.objects_;
    nic.nics_.regions_[(region->lkey - Nics::kFirstKey) / Nics::kKeyStep].reset();
    return 0;
  }
  static ibv_cq* create_cq(ibv_context* context, int entries, void* /*cq_context*/,
                           ibv_comp_channel* /*channel*/, int /*vector*/) {
    Nic& nic = nic_of(context);
    if (nic.is_removed()) return refuse<ibv_cq>(ENODEV);
    auto* const cq = new NicCq();
    cq->context = context;
    cq->cqe = entries;
    cq->most = static_cast<std::size_t>(entries);
    ++nic.objects_;
    return cq;
  }
  static int destroy_cq(ibv_cq* cq) {
    Nic& nic = nic_of(cq->context);
    --nic.objects_;
    nic.completions_ -= static_cast<NicCq*>(cq)->entries.size();
    delete static_cast<NicCq*>(cq);
    return 0;
  }
  static ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
    Nic& nic = nic_of(pd->context);
    if (nic.is_removed()) return refuse<ibv_qp>(ENODEV);
    if (nic.hazards_.refuses_queues) return refuse<ibv_qp>(ENOSPC);
    if (init->cap.max_inline_data > kMostInline) return refuse<ibv_qp>(EINVAL);
    auto* const qp = new NicQp();
    qp->context = pd->context;
    qp->pd = pd;
    qp->state = IBV_QPS_RESET;
    qp->qp_type = IBV_QPT_RC;
    qp->qp_num = Nics::kFirstQpn + static_cast<std::uint32_t>(nic.nics_.qps_.size());
    qp->send_cq = init->send_cq;
    qp->recv_cq = init->recv_cq;
    qp->nic = &nic;
    qp->sends_to = static_cast<NicCq*>(init->send_cq);
    qp->receives_to = static_cast<NicCq*>(init->recv_cq);
    qp->cap = init->cap;
    nic.nics_.qps_.push_back(qp);
    ++nic.objects_;
    return qp;
  }
  static int destroy_qp(ibv_qp* raw) {
    NicQp& qp = qp_of(raw);
    qp.nic->nics_.qps_[qp.qp_num - Nics::kFirstQpn] = nullptr;
    --qp.nic->objects_;
    delete &qp;
    return 0;
  }

  static int modify_qp(ibv_qp* raw, ibv_qp_attr* attr, int mask) {
    NicQp& qp = qp_of(raw);
    Nic& nic = *qp.nic;
    if (nic.is_removed()) return ENODEV;
    if ((mask & IBV_QP_STATE) == 0) return EINVAL;
    if (attr->qp_state == IBV_QPS_ERR) return move_to_error(qp);
    if (attr->qp_state == IBV_QPS_INIT && qp.state == IBV_QPS_RESET) {
      qp.access = attr->qp_access_flags;
    } else if (attr->qp_state == IBV_QPS_RTR && qp.state == IBV_QPS_INIT) {
      if (const int rc = find_peer(qp, *attr)) return rc;
    } else if (attr->qp_state == IBV_QPS_RTS && qp.state == IBV_QPS_RTR) {
      qp.next_psn = qp.unacked_psn = attr->sq_psn;
      qp.timeout_ns = attr->timeout == 0 ? 0 : std::int64_t{4096} << attr->timeout;
      qp.retries = qp.retries_left = attr->retry_cnt;
    } else {
      return EINVAL;
    }
    qp.state = attr->qp_state;
    return 0;
  }
  static int move_to_error(NicQp& qp) {
    if (qp.nic->hazards_.refuses_error_state) return EIO;
    qp.is_falsely_fenced = qp.nic->hazards_.fences_falsely;
    qp.nic->flush(qp);
    return 0;
  }
  static int find_peer(NicQp& qp, const ibv_qp_attr& attr) {
    std::array<std::uint8_t, 16> gid{};
    std::memcpy(gid.data(), attr.ah_attr.grh.dgid.raw, gid.size());
    Nic* const peer = qp.nic->nics_.find_nic(gid);
    if (peer == nullptr) return ETIMEDOUT;
    qp.peer_qpn = attr.dest_qp_num;
    qp.peer_port = peer->port();
    qp.expected_psn = attr.rq_psn;
    return 0;
  }

  // --- Work ---

  static int post_send(ibv_qp* raw, ibv_send_wr* list, ibv_send_wr** refused) {
    NicQp& qp = qp_of(raw);
    for (ibv_send_wr* one = list; one != nullptr; one = one->next) {
      const int rc = post_one(qp, *one);
      if (rc == 0) continue;
      *refused = one;
      qp.nic->transmit(qp);
      return rc;
    }
    qp.nic->transmit(qp);
    return 0;
  }
  static int post_one(NicQp& qp, const ibv_send_wr& wr) {
    Nic& nic = *qp.nic;
    if (nic.is_removed() || nic.hazards_.refuses_posts) return EIO;
    if (qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_ERR) return EINVAL;
    if (nic.hazards_.lacks_immediates && wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
      nic.nics_.violate("a device that knows no immediates is given one");
    if (qp.sends.size() >= qp.cap.max_send_wr) return ENOMEM;
    if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > qp.cap.max_send_sge)
      return EINVAL;
    SendEntry entry;
    entry.wr_id = wr.wr_id;
    entry.opcode = wr.opcode;
    entry.is_signaled = (wr.send_flags & IBV_SEND_SIGNALED) != 0;
    entry.imm = wr.imm_data;
    entry.remote = wr.wr.rdma.remote_addr;
    entry.rkey = wr.wr.rdma.rkey;
    if (wr.num_sge == 1) entry.local = wr.sg_list[0];
    if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
      if (entry.local.length > qp.cap.max_inline_data) return EINVAL;
      entry.copied = nic.read_local(entry, 0, entry.local.length);
      entry.is_inline = true;
    } else if (entry.opcode != IBV_WR_RDMA_READ) {
      entry.packets = std::min(kMostPackets, 1 + entry.local.length / kBytesOfPacket);
    }
    if (qp.state == IBV_QPS_ERR) {
      qp.sends.push_back(std::move(entry));
      nic.flush(qp);
      return 0;
    }
    entry.first_psn = qp.next_psn;
    qp.next_psn = (qp.next_psn + entry.packets) & 0xffffff;
    qp.sends.push_back(std::move(entry));
    return 0;
  }

  static int post_recv(ibv_qp* raw, ibv_recv_wr* list, ibv_recv_wr** refused) {
    NicQp& qp = qp_of(raw);
    for (ibv_recv_wr* one = list; one != nullptr; one = one->next) {
      if (qp.nic->is_removed() || qp.nic->hazards_.refuses_posts ||
          qp.receives.size() >= qp.cap.max_recv_wr) {
        *refused = one;
        return qp.receives.size() >= qp.cap.max_recv_wr ? ENOMEM : EIO;
      }
      qp.receives.push_back(*one);
      qp.receive_places.push_back(one->num_sge == 1 ? one->sg_list[0] : ibv_sge{});
      if (qp.state == IBV_QPS_ERR) qp.nic->flush(qp);
    }
    return 0;
  }

  static int poll_cq(ibv_cq* raw, int most, ibv_wc* found) {
    auto& cq = *static_cast<NicCq*>(raw);
    if (cq.entries.empty()) return 0;
    int count = 0;
    for (; count < most && !cq.entries.empty(); ++count) {
      found[count] = cq.entries.front();
      cq.entries.pop_front();
    }
    nic_of(raw->context).completions_ -= static_cast<std::size_t>(count);
    return count;
  }
};

ibv_context* Nic::open() {
  contexts_.push_back(std::make_unique<NicContext>());
  NicContext& context = *contexts_.back();
  context.nic = this;
  context.ops.post_send = NicVerbs::post_send;
  context.ops.post_recv = NicVerbs::post_recv;
  context.ops.poll_cq = NicVerbs::poll_cq;
  context.async_fd = context.cmd_fd = -1;
  return &context;
}

const verbs::Api& Nics::api() noexcept {
  static const verbs::Api api = [] {
    verbs::Api made;
    made.close_device = NicVerbs::close_device;
    made.query_port_compat = NicVerbs::query_port;
    made.query_gid = NicVerbs::query_gid;
    made.query_pkey = NicVerbs::query_pkey;
    made.alloc_pd = NicVerbs::alloc_pd;
    made.dealloc_pd = NicVerbs::dealloc_pd;
    made.reg_mr = NicVerbs::reg_mr;
    made.dereg_mr = NicVerbs::dereg_mr;
    made.create_cq = NicVerbs::create_cq;
    made.destroy_cq = NicVerbs::destroy_cq;
    made.create_qp = NicVerbs::create_qp;
    made.modify_qp = NicVerbs::modify_qp;
    made.destroy_qp = NicVerbs::destroy_qp;
    made.library = "simulated";
    return made;
  }();
  return api;
}

}  // namespace beeline::simulation
