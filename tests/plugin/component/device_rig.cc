// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/component/device_rig.h"

#include <cstring>

#include "plugin/device/agree.h"
#include "plugin/device/gid_choice.h"
#include "softnic/spec/spec_toml.h"
#include "tests/support/must.h"

namespace beeline::test {
namespace {

verbs::Api load_softnic() {
  auto loaded = verbs::load(SOFTNIC_LIBIBVERBS);
  if (!loaded) throw MustError(loaded.error().text);
  return std::move(loaded->api);
}

verbs::PathParams path_between(const Device& from, const Device& to) {
  const GidSide local{from.facts.gids, {}, from.name};
  const GidSide remote{to.facts.gids, {}, to.name};
  const auto pair = from.transport == Transport::kInfiniBand ? choose_ib_gids(local, remote)
                                                             : choose_gids(local, remote);
  if (!pair) throw MustError(pair.error().text);
  verbs::PathParams path{.port = from.port,
                         .dlid = to.facts.lid,
                         .is_global = pair->grh,
                         .sgid_index = static_cast<std::uint8_t>(pair->local_index)};
  for (const GidEntry& entry : to.facts.gids) {
    if (entry.index == pair->remote_index) std::memcpy(path.dgid.raw, entry.gid.data(), 16);
  }
  return path;
}

void bring_up(End& end, const End& peer) {
  must(verbs::to_init(end.qp, {.port = end.device.port,
                               .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ}));
  must(verbs::to_rtr(
      end.qp, {.mtu = must(agree_mtu(end.device.facts.active_mtu,
                                     static_cast<std::uint8_t>(peer.device.facts.active_mtu))),
               .dest_qpn = peer.qp->qp_num,
               .rq_psn = peer.psn,
               .path = path_between(end.device, peer.device)}));
  must(verbs::to_rts(end.qp, {.sq_psn = end.psn, .timeout = 14}));
}

}  // namespace

const verbs::Api& softnic_api() {
  static const verbs::Api api = load_softnic();
  return api;
}

softnic::FabricSpec fabric_file(const std::string& name) {
  auto spec = softnic::read_fabric_file(std::string(SOFTNIC_FABRICS_DIR) + "/" + name);
  if (!spec) throw MustError(spec.error().text);
  return *std::move(spec);
}

DeviceOptions device_options(const TestFabric& fabric, const std::string& host,
                             const std::string& filter) {
  return {.hca_filter = filter, .sysfs_root = fabric.fabric().sysfs_root(host)};
}

std::unique_ptr<DeviceTable> scan(const TestFabric& fabric, const std::string& host,
                                  const std::string& filter) {
  TestFabric::choose_host(host);
  return must(DeviceTable::scan(softnic_api(), device_options(fabric, host, filter)));
}

const Device& find_device(const DeviceTable& table, const std::string& ibdev, int port) {
  for (const Device& device : table.devices()) {
    if (device.ibdev == ibdev && device.port == port) return device;
  }
  throw MustError("no device " + ibdev);
}

End::End(const Device& the_device, std::uint32_t max_inline)
    : device(the_device), memory(must(ControlBlock::create(4096))) {
  ibv_pd* const pd = must(device.context->pd());
  must(memory.attach(device.api(), pd));
  cq = must(verbs::create_cq(device.api(), device.context->raw(), 64));
  auto made = must(verbs::create_qp(
      device.api(), pd, {.send_cq = cq.get(), .recv_cq = cq.get(), .max_inline = max_inline}));
  qp = std::move(made.qp);
  granted = made.granted;
}

void connect(End& a, End& b) {
  bring_up(a, b);
  bring_up(b, a);
}

void post_write(End& from, End& to, std::uint32_t length) {
  ibv_sge piece{from.memory.address(), length, from.memory.lkey(0)};
  ibv_send_wr wr = {};
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {to.memory.address(), to.memory.rkey(0)};
  ibv_send_wr* bad = nullptr;
  BL_MUST_OK(ibv_post_send(from.qp.get(), &wr, &bad));
}

ibv_wc wait_completion(End& end) {
  const auto deadline = Clock::now() + kPatience;
  ibv_wc wc = {};
  while (Clock::now() < deadline) {
    const int got = ibv_poll_cq(end.cq.get(), 1, &wc);
    BL_MUST(got >= 0);
    if (got == 1) return wc;
  }
  throw MustError("no completion came");
}

}  // namespace beeline::test
