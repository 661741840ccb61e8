// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/handshake/handshake_end.h"

#include "common/base/host.h"

namespace beeline {

std::string PendingComm::own_name() const {
  std::string text = host_name();
  for (const Device* const device : devices) {
    text += (device == devices.front() ? " " : ", ") + label(*device);
  }
  return text;
}

bool PendingComm::has_connected_directly() const noexcept {
  for (std::size_t rail = 0; rail < cm.size(); ++rail) {
    if (cm[rail] == nullptr && !end->paths()[rail].is_connected()) return false;
  }
  return true;
}

Status make_end(PendingComm& comm, const CommPlan& plan, PortWatch& ports) {
  // Fails for a device that was removed, with an error that says so.
  for (const Device* const device : comm.devices) BL_TRY(ports.facts(*device));
  CommEnd end = BL_TRY(CommEnd::create(plan));
  for (const Device* const device : comm.devices) BL_TRY(end.add_path(*device, comm.qp));
  comm.end = std::move(end);
  comm.cm.assign(comm.devices.size(), nullptr);
  return {};
}

MadeConnection make_connection(PendingComm& comm, Role role, const wire::Window& peer_window) {
  auto made = std::make_unique<Connection>(std::move(*comm.end).finish(role, peer_window));
  made->devices = comm.devices;
  return made;
}

std::string connecting_timeout_text(const PendingComm& comm, const std::string& limit) {
  for (std::size_t rail = 0; rail < comm.cm.size(); ++rail) {
    if (comm.end->paths()[rail].is_connected()) continue;
    if (comm.cm[rail] != nullptr) return comm.cm[rail]->timeout_text(limit);
  }
  return comm.own_name() + " could not resolve the address of " + comm.peer + " " + limit;
}

std::string timeout_limit_text(const ControlOptions& options) {
  const std::chrono::milliseconds limit = options.connect_timeout;
  if (limit.count() % 1000 != 0) return "within " + std::to_string(limit.count()) + " ms";
  return "within " + std::to_string(limit.count() / 1000) + " s";
}

}  // namespace beeline
