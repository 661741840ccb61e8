// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/loopback.h"

#include <algorithm>
#include <cstring>

#include "plugin/verbs/qp_steps.h"
#include "plugin/verbs/query.h"

namespace beeline {
namespace {

constexpr unsigned kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

Outcome<std::uint16_t> own_gid(const Device& device, const GidPolicy& policy) {
  const std::string name = label(device);
  const GidSide side{.table = device.facts.gids, .policy = policy, .who = name};
  const auto pair = device.transport == Transport::kInfiniBand ? choose_ib_gids(side, side)
                                                               : choose_gids(side, side);
  if (!pair) return fail(Problem(Errc::kNotFound, pair.error().text));
  return pair->local_index;
}

Outcome<verbs::PathParams> own_path(const Device& device, const GidPolicy& policy) {
  verbs::PathParams path = {.port = device.port, .dlid = device.facts.lid};
  if (device.transport == Transport::kInfiniBand) return path;
  const std::uint16_t index = BL_TRY(own_gid(device, policy));
  const auto& table = device.facts.gids;
  const auto entry = std::ranges::find(table, index, &GidEntry::index);
  if (entry == table.end())
    return fail(Problem(Errc::kNotFound, "the port's own GID is not in its table"));
  path.is_global = true;
  path.sgid_index = static_cast<std::uint8_t>(index);
  std::memcpy(&path.dgid, entry->gid.data(), sizeof path.dgid);
  // The address may have changed since the scan: the device is reached by the present one.
  const auto now = verbs::query_gid(device.api(), device.context->raw(), device.port, index);
  if (now) path.dgid = *now;
  return path;
}

}  // namespace

Outcome<Loopback> Loopback::make(const Device& device, const LoopbackPlan& plan) {
  if (device.transport == Transport::kIwarp) {
    return fail(Errc::kUnsupported, "reach an iWARP port from itself");
  }
  const verbs::PathParams path = BL_TRY(own_path(device, plan.gid));
  const std::uint16_t pkey_index =
      BL_TRY(choose_own_pkey({device.facts.pkeys, plan.pkey, label(device)}));
  verbs::MadeQp made = BL_TRY(verbs::create_qp(
      device.api(), plan.pd,
      {.send_cq = plan.cq, .recv_cq = plan.cq, .send_depth = plan.depth, .recv_depth = 1}));
  const auto reads = static_cast<std::uint8_t>(std::clamp(device.caps.max_rd_atomic, 1, 16));
  const std::uint32_t psn = verbs::random_psn();
  BL_TRY(
      verbs::to_init(made.qp, {.port = device.port, .pkey_index = pkey_index, .access = kAccess}));
  BL_TRY(verbs::to_rtr(made.qp, {.mtu = device.facts.active_mtu,
                                 .dest_qpn = made.qp->qp_num,
                                 .rq_psn = psn,
                                 .path = path,
                                 .max_dest_rd_atomic = reads}));
  BL_TRY(verbs::to_rts(made.qp, {.sq_psn = psn,
                                 .timeout = plan.timeout,
                                 .retry_cnt = plan.retry_count,
                                 .max_rd_atomic = reads}));
  return Loopback(std::move(made.qp));
}

int Loopback::post(const Transfer& transfer) const noexcept {
  ibv_sge sge = {.addr = reinterpret_cast<std::uint64_t>(transfer.local),
                 .length = transfer.bytes,
                 .lkey = transfer.lkey};
  ibv_send_wr request = {};
  request.wr_id = transfer.id;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = transfer.opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = transfer.remote;
  request.wr.rdma.rkey = transfer.rkey;
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(qp_.get(), &request, &refused);
}

}  // namespace beeline
