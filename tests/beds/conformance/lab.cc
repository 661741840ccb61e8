// SPDX-License-Identifier: Apache-2.0
#include "tests/beds/conformance/lab.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

struct DeviceList {
  DeviceList() : all(::ibv_get_device_list(nullptr)) {
    must(all != nullptr, "ibv_get_device_list");
  }
  ~DeviceList() { ::ibv_free_device_list(all); }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  ibv_device** all;
};

Context open(const std::string& name) {
  const DeviceList list;
  for (ibv_device** device = list.all; *device != nullptr; ++device) {
    if (name == ::ibv_get_device_name(*device)) return Context(::ibv_open_device(*device));
  }
  errno = ENODEV;
  return {};
}

bool is_ipv4(const ibv_gid& gid) {
  constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof kPrefix) == 0;
}

std::byte* map(std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(at != MAP_FAILED, "mmap");
  return static_cast<std::byte*>(at);
}

std::byte pattern(std::size_t at, std::uint8_t seed) {
  return static_cast<std::byte>((at * 131 + (at >> 8) * 7 + seed) & 0xff);
}

Channel make_channel(ibv_context* context, bool wanted) {
  Channel channel(wanted ? ::ibv_create_comp_channel(context) : nullptr);
  must(!wanted || channel != nullptr, "ibv_create_comp_channel");
  return channel;
}

Srq make_srq(ibv_pd* pd, std::uint32_t depth) {
  if (depth == 0) return {};
  ibv_srq_init_attr init = {};
  init.attr.max_wr = depth;
  init.attr.max_sge = 4;
  Srq srq(::ibv_create_srq(pd, &init));
  must(srq != nullptr, "ibv_create_srq");
  return srq;
}

Qp make_qp(const End& end, const EndPlan& plan) {
  ibv_qp_init_attr init = {};
  init.send_cq = end.sends.get();
  init.recv_cq = end.receives.get();
  init.srq = end.srq.get();
  init.cap = plan.cap;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = plan.signal_all ? 1 : 0;
  return Qp(::ibv_create_qp(end.pd.get(), &init));
}

}  // namespace

void must(bool done, const char* what) {
  if (!done) throw SetupFailed{std::string(what) + " " + verdict_of_errno(false)};
}

void must_accept(int answer, const char* what) {
  if (answer != 0) throw SetupFailed{std::string(what) + " " + verdict(answer)};
}

Device::Device(const std::string& name) : context(open(name)) {
  must(context != nullptr, ("device " + name).c_str());
  must_accept(::ibv_query_device(context.get(), &attr), "ibv_query_device");
  must_accept(::ibv_query_port(context.get(), kPort, &port), "ibv_query_port");
  if (!is_ethernet()) {
    must(::ibv_query_gid(context.get(), kPort, 0, &gid) == 0, "ibv_query_gid");
    return;
  }
  for (std::uint32_t index = 0; index < static_cast<std::uint32_t>(port.gid_tbl_len); ++index) {
    ibv_gid_entry entry = {};
    if (::ibv_query_gid_ex(context.get(), kPort, index, &entry, 0) != 0) continue;
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || !is_ipv4(entry.gid)) continue;
    gid_index = static_cast<std::uint8_t>(index);
    gid = entry.gid;
    return;
  }
  throw SetupFailed{name + " has no GID of RoCE v2 over IPv4"};
}

Region::Region(ibv_pd* pd, std::size_t bytes, unsigned access)
    : size_(bytes), data_(map(bytes)), mr_(::ibv_reg_mr(pd, data_, bytes, access)) {
  const int error = errno;
  if (mr_ == nullptr) ::munmap(data_, size_);
  errno = error;
  must(mr_ != nullptr, "ibv_reg_mr");
}

Region::~Region() {
  mr_.reset();
  ::munmap(data_, size_);
}

void Region::fill(std::size_t offset, std::size_t bytes, std::uint8_t seed) {
  for (std::size_t i = 0; i < bytes; ++i) data_[offset + i] = pattern(i, seed);
}

bool Region::has_pattern(std::size_t offset, std::size_t bytes, std::uint8_t seed) const {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (data_[offset + i] != pattern(i, seed)) return false;
  }
  return true;
}

End::End(const Device& its_device, const EndPlan& plan)
    : device(its_device),
      qp_rights(plan.qp_rights),
      mtu(plan.mtu),
      pd(::ibv_alloc_pd(device.context.get())),
      channel(make_channel(device.context.get(), plan.channel)),
      srq(make_srq(pd.get(), plan.shared_receives)),
      sends(::ibv_create_cq(device.context.get(), plan.cqe, nullptr, channel.get(), 0)),
      receives(::ibv_create_cq(device.context.get(), plan.cqe, nullptr, channel.get(), 0)),
      memory(pd.get(), plan.bytes, plan.memory_rights) {
  must(sends != nullptr && receives != nullptr, "ibv_create_cq");
  qp = make_qp(*this, plan);
  must(qp != nullptr, "ibv_create_qp");
}

ibv_qp_attr init_attr(unsigned rights) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  attr.qp_access_flags = rights;
  return attr;
}

ibv_qp_attr rtr_attr(const Device& own, const Device& peer, std::uint32_t peer_qpn,
                     const LinkPlan& plan) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = std::min(own.port.active_mtu, peer.port.active_mtu);
  attr.dest_qp_num = peer_qpn;
  attr.rq_psn = plan.receive_psn;
  attr.max_dest_rd_atomic = plan.reads_in;
  attr.min_rnr_timer = plan.min_rnr_timer;
  attr.ah_attr.port_num = kPort;
  attr.ah_attr.dlid = peer.port.lid;
  if (own.is_ethernet()) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = peer.gid;
    attr.ah_attr.grh.sgid_index = own.gid_index;
    attr.ah_attr.grh.hop_limit = 64;
  }
  return attr;
}

ibv_qp_attr rts_attr(const LinkPlan& plan) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = plan.timeout;
  attr.retry_cnt = plan.retry;
  attr.rnr_retry = plan.rnr_retry;
  attr.sq_psn = plan.send_psn;
  attr.max_rd_atomic = plan.reads_out;
  return attr;
}

LinkPlan impatient() {
  LinkPlan plan;
  plan.timeout = 14;  // 67 ms
  plan.retry = 2;
  return plan;
}

int modify(const End& end, ibv_qp_attr attr, int mask) {
  return ::ibv_modify_qp(end.qp.get(), &attr, mask);
}

int move_to(const End& end, ibv_qp_state state) {
  ibv_qp_attr attr = {};
  attr.qp_state = state;
  return modify(end, attr, IBV_QP_STATE);
}

void raise(const End& end, const End& peer, ibv_qp_state state, const LinkPlan& plan) {
  if (state == IBV_QPS_RESET) return;
  must_accept(modify(end, init_attr(end.qp_rights), kInitMask), "to INIT");
  if (state == IBV_QPS_INIT) return;
  ibv_qp_attr rtr = rtr_attr(end.device, peer.device, peer.qp->qp_num, plan);
  if (end.mtu != 0) rtr.path_mtu = end.mtu;
  must_accept(modify(end, rtr, kRtrMask), "to RTR");
  if (state == IBV_QPS_RTR) return;
  must_accept(modify(end, rts_attr(plan), kRtsMask), "to RTS");
  if (state == IBV_QPS_SQD) drain(end);
}

void drain(const End& end) {
  must_accept(move_to(end, IBV_QPS_SQD), "to SQD");
  const auto until = std::chrono::steady_clock::now() + kPatience;
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  do {
    must_accept(::ibv_query_qp(end.qp.get(), &attr, IBV_QP_STATE, &init), "ibv_query_qp");
  } while (attr.sq_draining != 0 && std::chrono::steady_clock::now() < until);
}

ibv_qp_state state_of(const End& end) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  must_accept(::ibv_query_qp(end.qp.get(), &attr, IBV_QP_STATE, &init), "ibv_query_qp");
  return attr.qp_state;
}

Pair::Pair(const Lab& lab, const PairPlan& plan) : a(lab.a, plan.a), b(lab.b, plan.b) {
  raise(a, b, IBV_QPS_RTS, plan.link);
  raise(b, a, IBV_QPS_RTS, plan.link);
}

}  // namespace conformance
