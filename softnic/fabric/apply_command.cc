// SPDX-License-Identifier: Apache-2.0
// Executes a command in three steps: the shared words, then the generation, which invalidates
// cached routes, and then the sysfs files and events.
#include <infiniband/verbs.h>

#include "common/base/clock.h"
#include "softnic/fabric/device_presence.h"
#include "softnic/fabric/fabric_log.h"
#include "softnic/fabric/port_command.h"
#include "softnic/fabric/port_faults.h"
#include "softnic/fabric/publish_port.h"

namespace softnic {
namespace {

using Kind = PortCommand::Kind;

// 0: until `resume`.
std::uint64_t pause_end(std::uint64_t ns) {
  return ns == 0 ? kForEver : static_cast<std::uint64_t>(beeline::now_ns()) + ns;
}

// Removal, changed GIDs and a changed LID stay: a test that makes these changes wants to keep them.
void reset(DeviceRecord& device, PortRecord& port) {
  shape(port, port.file_rate, port.file_latency);
  set_jitter(port, 0);
  set_loss(port, 0);
  set_sent_loss(port, 0);
  lose_over(port, 0);
  resume(port);
  disarm(port);
  port.pkey.store(kDefaultPkey);
  device.refuses_to_break.store(0);
  device.refuses_gpu_memory.store(0);
  device.hides_events.store(0);
  device.command_ns.store(0);
  switch_port(port, true);
}

void change_words(const Fabric& fabric, PortRef where, const PortCommand& command) {
  DeviceRecord& device = fabric.header().devices[where.device];
  PortRecord& port = device.ports[where.port];
  switch (command.kind) {
    case Kind::kDown: return switch_port(port, false);
    case Kind::kUp: return switch_port(port, true);
    case Kind::kRate: return shape(port, command.value, port.latency_ns.load());
    case Kind::kLatency: return shape(port, port.rate_bytes_s.load(), command.value);
    case Kind::kJitter: return set_jitter(port, command.value);
    case Kind::kLoss: return set_loss(port, static_cast<std::uint32_t>(command.value));
    case Kind::kSentLoss: return set_sent_loss(port, static_cast<std::uint32_t>(command.value));
    case Kind::kLossOver: return lose_over(port, command.value);
    case Kind::kBlackHole: return black_hole(port);
    case Kind::kPause: return pause_until(port, pause_end(command.value));
    case Kind::kResume: return resume(port);
    case Kind::kError: return arm_error(port, command.status, command.value);
    case Kind::kCorrupt: return arm_corruption(port, command.value);
    case Kind::kDiscard: return arm_discard(port, command.bytes, command.value);
    case Kind::kGid: return set_gid(port, command);
    case Kind::kPkey: return port.pkey.store(static_cast<std::uint32_t>(command.value));
    case Kind::kLid: return port.lid.store(static_cast<std::uint32_t>(command.value));
    case Kind::kReset: return reset(device, port);
    case Kind::kRemove: return remove_device(fabric, where.device);
    case Kind::kReturn: return return_device(fabric, where.device);
    case Kind::kRefuseErr:
      return device.refuses_to_break.store(static_cast<std::uint32_t>(command.value));
    case Kind::kRefuseGpu:
      return device.refuses_gpu_memory.store(static_cast<std::uint32_t>(command.value));
    case Kind::kHideEvents:
      return device.hides_events.store(static_cast<std::uint32_t>(command.value));
    case Kind::kCommandTime: return device.command_ns.store(command.value);
    case Kind::kEvent: return;
  }
}

// Updates files and sends events. A state or P_Key may also be unreported because a process died.
void publish(const Fabric& fabric, PortRef where, const PortCommand& command) {
  show_state(fabric, where);
  report_state(fabric, where);
  if (port_at(fabric, where).reported_pkey.load() != port_at(fabric, where).pkey.load()) {
    show_pkey_entry(fabric, where);
    report_pkey(fabric, where);
  }
  if (command.kind == Kind::kGid && command.value < port_at(fabric, where).gid_table_len) {
    show_gid_entry(fabric, where, static_cast<std::uint32_t>(command.value));
    report_event(fabric, where, IBV_EVENT_GID_CHANGE);
  }
  if (command.kind == Kind::kLid) {
    show_lid_of(fabric, where);
    report_event(fabric, where, IBV_EVENT_LID_CHANGE);
  }
  if (command.kind == Kind::kEvent) report_event(fabric, where, command.status);
}

}  // namespace

void apply(const Fabric& fabric, PortRef where, const PortCommand& command) {
  const bool for_device = is_for_device(command.kind);
  if (for_device) {
    log_device(fabric, where.device, command_text(command));
  } else {
    log_port(fabric, where, command_text(command));
  }
  change_words(fabric, where, command);
  if (for_device) return;
  fabric.header().generation.fetch_add(1);
  publish(fabric, where, command);
}

}  // namespace softnic
