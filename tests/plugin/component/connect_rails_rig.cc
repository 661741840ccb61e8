// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/component/connect_rails_rig.h"

#include <atomic>
#include <cerrno>
#include <mutex>

namespace beeline::test {
namespace {

struct Refusal {
  std::string device;
  ibv_qp_state state = IBV_QPS_RESET;
  int sys_errno = 0;
};

std::mutex refusal_mutex;
Refusal refusal;
std::atomic<int> counted_pairs{0};

// 0: it is not refused.
int refusal_of(const ibv_context& context, ibv_qp_state state) {
  const std::lock_guard lock(refusal_mutex);
  const bool is_refused = refusal.device == context.device->name && refusal.state == state;
  return is_refused ? refusal.sys_errno : 0;
}

int modify_unless_refused(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  const bool has_state = (mask & IBV_QP_STATE) != 0;
  const int error = has_state ? refusal_of(*qp->context, attr->qp_state) : 0;
  return error != 0 ? error : softnic_api().modify_qp(qp, attr, mask);
}

ibv_qp* count_pair(ibv_pd* pd, ibv_qp_init_attr* init) {
  if (const int error = refusal_of(*pd->context, IBV_QPS_RESET); error != 0) {
    errno = error;
    return nullptr;
  }
  ibv_qp* const qp = softnic_api().create_qp(pd, init);
  if (qp != nullptr) ++counted_pairs;
  return qp;
}

int uncount_pair(ibv_qp* qp) {
  --counted_pairs;
  return softnic_api().destroy_qp(qp);
}

constexpr std::size_t kDevices = 8;

std::unique_ptr<DeviceTable> scan_with(const RefusingVerbs& verbs, const TestFabric& fabric) {
  TestFabric::choose_host("h0");
  return must(DeviceTable::scan(verbs.api(), device_options(fabric)));
}

std::vector<const Device*> devices_named(const DeviceTable& table, const std::string& prefix) {
  std::vector<const Device*> devices;
  for (std::size_t i = 0; i < kDevices; ++i) {
    devices.push_back(&find_device(table, prefix + std::to_string(i)));
  }
  return devices;
}

ControlOptions options_with(int qps_per_rail) {
  ControlOptions options = control_options();
  options.qp.qps_per_rail = qps_per_rail;
  return options;
}

}  // namespace

RefusingVerbs::RefusingVerbs() : api_(softnic_api()) {
  refuse("", IBV_QPS_RESET, 0);
  counted_pairs = 0;
  api_.modify_qp = modify_unless_refused;
  api_.create_qp = count_pair;
  api_.destroy_qp = uncount_pair;
}

void RefusingVerbs::refuse(const std::string& device, ibv_qp_state state, int sys_errno) {
  const std::lock_guard lock(refusal_mutex);
  refusal = {.device = device, .state = state, .sys_errno = sys_errno};
}

int RefusingVerbs::queue_pairs() { return counted_pairs; }

softnic::FabricSpec sixteen_devices() {
  softnic::FabricSpec spec;
  softnic::HostSpec host = {.name = "h0", .numa_nodes = 1, .devices = {}, .gpus = {}};
  for (const char* const prefix : {"a", "b"}) {
    for (std::size_t i = 0; i < kDevices; ++i) {
      softnic::DeviceSpec& device = host.devices.emplace_back();
      device.name = prefix + std::to_string(i);
      device.ports.resize(1);
    }
  }
  spec.hosts = {std::move(host)};
  return spec;
}

RailsRig::RailsRig(const softnic::FabricSpec& spec)
    : fabric(spec),
      table(scan_with(verbs, fabric)),
      here_(devices_named(*table, "a")),
      there_(devices_named(*table, "b")) {
  set_qps_per_rail(1, 1);
}

void RailsRig::set_qps_per_rail(int listening, int connecting) {
  a = std::make_unique<ControlPlane>(options_with(listening), *table);
  b = std::make_unique<ControlPlane>(options_with(connecting), *table);
}

void RailsRig::set_recovery() {
  ControlOptions options = control_options();
  options.resume_channels = true;
  a = std::make_unique<ControlPlane>(options, *table);
  b = std::make_unique<ControlPlane>(options, *table);
}

CommPair RailsRig::join(std::size_t listening, std::size_t connecting) {
  Ticket ticket;
  Listener* const listener = must(a->listen(rails_of_a(listening), ticket.handle()));
  CommPair comm;
  wait_for(
      [&] {
        if (comm.sender == nullptr) {
          comm.sender = must(b->connect(rails_of_b(connecting), ticket.handle()));
        }
        if (comm.receiver == nullptr) comm.receiver = must(a->accept(*listener));
        return comm.sender != nullptr && comm.receiver != nullptr;
      },
      "a comm");
  a->close(listener);
  return comm;
}

Error RailsRig::join_error(std::size_t listening, std::size_t connecting, const std::string& line) {
  const Errors errors = join_errors(listening, connecting);
  wait_for([&] { return log.count(line) == 2; }, "a line of each end");
  return errors.of_connect;
}

RailsRig::Errors RailsRig::join_errors(std::size_t listening, std::size_t connecting) {
  Ticket ticket;
  Listener* const listener = must(a->listen(rails_of_a(listening), ticket.handle()));
  Errors errors = {.of_connect = connect_error(ticket, connecting), .of_accept = {}};
  wait_for(
      [&] {
        const auto made = a->accept(*listener);
        if (made && *made != nullptr) throw MustError("an accept succeeded that should not");
        if (!made) errors.of_accept = made.error();
        return !made;
      },
      "an accept that fails");
  a->close(listener);
  return errors;
}

Error RailsRig::connect_error(Ticket& ticket, std::size_t connecting) {
  Error error;
  wait_for(
      [&] {
        const auto made = b->connect(rails_of_b(connecting), ticket.handle());
        if (made && *made != nullptr) throw MustError("a connect succeeded that should not");
        if (!made) error = made.error();
        return !made;
      },
      "a connect that fails");
  return error;
}

}  // namespace beeline::test
