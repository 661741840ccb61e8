// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/component/connect_cm_rig.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace beeline::test {
namespace {

std::mutex pairs_mutex;
std::map<std::pair<const ibv_context*, std::uint32_t>, ibv_qp*> pairs;

ibv_qp* create_listed(ibv_pd* pd, ibv_qp_init_attr* init) {
  ibv_qp* const qp = softnic_api().create_qp(pd, init);
  const std::lock_guard lock(pairs_mutex);
  if (qp != nullptr) pairs[{qp->context, qp->qp_num}] = qp;
  return qp;
}

int destroy_listed(ibv_qp* qp) {
  {
    const std::lock_guard lock(pairs_mutex);
    pairs.erase({qp->context, qp->qp_num});
  }
  return softnic_api().destroy_qp(qp);
}

decltype(ibv_context_ops::poll_cq) real_poll;
decltype(ibv_context_ops::post_send) real_send;
std::atomic<int> writes_seen{0};
std::atomic<int> held_until_writes{0};  // 0: they are not held back
std::atomic<bool> is_losing{false};
std::atomic<std::uint32_t> lost_qpn{0};
std::atomic<bool> has_found_completion{false};
std::atomic<int> polls_behind{0};

int poll_of_listener(ibv_cq* cq, int entries, ibv_wc* completions) {
  if (writes_seen < held_until_writes) return 0;
  const int found = real_poll(cq, entries, completions);
  const bool is_send = found > 0 && completions->opcode == IBV_WC_SEND;
  if (!is_send || !is_losing.exchange(false)) return found;
  lost_qpn = completions->qp_num;
  return found - 1;
}

int poll_of_connector(ibv_cq* cq, int entries, ibv_wc* completions) {
  const int found = real_poll(cq, entries, completions);
  if (found > 0) has_found_completion = true;
  if (found == 0 && has_found_completion) ++polls_behind;
  return found;
}

int send_of_connector(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** refused) {
  const bool is_write = work->opcode == IBV_WR_RDMA_WRITE;
  const int rc = real_send(qp, work, refused);
  if (is_write && rc == 0) ++writes_seen;
  return rc;
}

// A device that has an interface with an address.
Device on_loopback(const DeviceTable& table, const std::string& ibdev) {
  Device device = find_device(table, ibdev);
  device.netdev = "lo";
  return device;
}

std::unique_ptr<DeviceTable> scan_with(const CmVerbs& verbs, const TestFabric& fabric) {
  TestFabric::choose_host("h0");
  return must(DeviceTable::scan(verbs.api(), device_options(fabric)));
}

}  // namespace

CmVerbs::CmVerbs() : api_(softnic_api()) {
  api_.create_qp = create_listed;
  api_.destroy_qp = destroy_listed;
  writes_seen = 0;
  held_until_writes = 0;
  is_losing = false;
  lost_qpn = 0;
  has_found_completion = false;
  polls_behind = 0;
}

// Before other threads use the devices, which keep these functions until they are closed.
void CmVerbs::watch(const Device& listening, const Device& connecting) {
  real_poll = listening.context->raw()->ops.poll_cq;
  real_send = listening.context->raw()->ops.post_send;
  listening.context->raw()->ops.poll_cq = poll_of_listener;
  connecting.context->raw()->ops.poll_cq = poll_of_connector;
  connecting.context->raw()->ops.post_send = send_of_connector;
}

ibv_qp* CmVerbs::find(const ibv_context* device, std::uint32_t qpn) {
  const std::lock_guard lock(pairs_mutex);
  return pairs.at({device, qpn});
}

void CmVerbs::hold_completions(int writes) { held_until_writes = writes; }
void CmVerbs::release_completions() { held_until_writes = 0; }
void CmVerbs::lose_next_completion() { is_losing = true; }
std::uint32_t CmVerbs::qpn_of_lost_completion() { return lost_qpn; }
int CmVerbs::writes() { return writes_seen; }
int CmVerbs::further_polls() { return polls_behind; }

CmRig::CmRig(bool listener_wishes, bool connector_wishes)
    : table(scan_with(verbs, fabric)),
      here(on_loopback(*table, "softnic0")),
      there(on_loopback(*table, "softnic1")),
      a(std::make_unique<ControlPlane>(cm_options(listener_wishes, &library), *table)),
      b(std::make_unique<ControlPlane>(cm_options(connector_wishes, &library), *table)) {
  CmVerbs::watch(here, there);
}

void CmRig::set_qps_per_rail(int count) {
  ControlOptions options = cm_options(true, &library);
  options.qp.qps_per_rail = count;
  a = std::make_unique<ControlPlane>(options, *table);
  b = std::make_unique<ControlPlane>(options, *table);
}

void CmRig::play_iwarp() {
  for (Device* const device : {&here, &there}) {
    device->transport = Transport::kIwarp;
    device->caps.immediate = false;
  }
  fake.move_queue_pairs(CmVerbs::find);
}

CommPair CmRig::join() {
  Ticket ticket;
  Listener* const listener = must(a->listen(here_only, ticket.handle()));
  CommPair comm;
  wait_for(
      [&] {
        if (comm.sender == nullptr) comm.sender = must(b->connect(there_only, ticket.handle()));
        if (comm.receiver == nullptr) comm.receiver = must(a->accept(*listener));
        return comm.sender != nullptr && comm.receiver != nullptr;
      },
      "a comm");
  a->close(listener);
  return comm;
}

void CmRig::fail_to_join() {
  Ticket ticket;
  Listener* const listener = must(a->listen(here_only, ticket.handle()));
  wait_for(
      [&] {
        const Result<ConnectionPtr> made = b->connect(there_only, ticket.handle());
        if (made && *made != nullptr) throw MustError("a connect succeeded that should not");
        return !made;
      },
      "a connect that fails");
  a->close(listener);
}

ControlOptions cm_options(bool is_requested, verbs::CmLibrary* library) {
  ControlOptions options = control_options();
  options.qp.cm_requested = is_requested;
  options.cm_library = library;
  return options;
}

bool has_completions(const Connection& end) {
  ibv_wc wc{};
  return ibv_poll_cq(end.paths[0].queues.cq.get(), 1, &wc) != 0;
}

}  // namespace beeline::test
