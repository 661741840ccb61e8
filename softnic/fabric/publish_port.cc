// SPDX-License-Identifier: Apache-2.0
// The files always get the current state of the port, because another process may have changed it
// again: after writing, the state is read once more.
#include "softnic/fabric/publish_port.h"

#include <infiniband/verbs.h>

#include <cstring>
#include <optional>

#include "softnic/fabric/event_names.h"
#include "softnic/fabric/events.h"
#include "softnic/spec/sysfs_tree.h"

namespace softnic {
namespace {

bool is_up(const PortRecord& port) { return (port.faults.load() & kFaultDown) == 0; }

// Calls `show(root, device name, port number, value)` until the value did not change during the
// call.
template <class Read, class Show>
void show_until_true(const Fabric& fabric, PortRef where, Read read, Show show) {
  const FabricHeader& header = fabric.header();
  const DeviceRecord& device = header.devices[where.device];
  const std::string root = fabric.sysfs_files(header.hosts[device.host].name);
  auto shown = read();
  for (;;) {
    show(root, device.name, where.port + 1, shown);
    auto now = read();
    if (now == shown) return;
    shown = now;
  }
}

struct GidFacts {
  std::uint32_t state = 0;
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool operator==(const GidFacts&) const = default;
};

std::optional<GidSpec> spec_of(const GidFacts& facts) {
  if (facts.state == 0) return std::nullopt;
  GidSpec spec;
  spec.kind = static_cast<GidKind>(facts.state - 1);
  std::memcpy(spec.raw.data(), &facts.high, sizeof facts.high);
  std::memcpy(spec.raw.data() + sizeof facts.high, &facts.low, sizeof facts.low);
  return spec;
}

}  // namespace

void show_state(const Fabric& fabric, PortRef where) {
  const PortRecord& port = port_at(fabric, where);
  show_until_true(
      fabric, where, [&] { return is_up(port); }, show_port_state);
}

void show_gid_entry(const Fabric& fabric, PortRef where, std::uint32_t index) {
  const GidRecord& gid = port_at(fabric, where).gids[index];
  const auto read = [&] { return GidFacts{gid.state.load(), gid.high.load(), gid.low.load()}; };
  const auto show = [&](const std::string& root, const std::string& device, std::uint32_t number,
                        const GidFacts& facts) {
    const std::optional<GidSpec> spec = spec_of(facts);
    show_gid(root, device, number, index, spec ? &*spec : nullptr);
  };
  show_until_true(fabric, where, read, show);
}

void show_pkey_entry(const Fabric& fabric, PortRef where) {
  const PortRecord& port = port_at(fabric, where);
  show_until_true(
      fabric, where, [&] { return port.pkey.load(); }, show_pkey);
}

void show_lid_of(const Fabric& fabric, PortRef where) {
  const PortRecord& port = port_at(fabric, where);
  show_until_true(
      fabric, where, [&] { return port.lid.load(); }, show_lid);
}

void show_port(const Fabric& fabric, PortRef where) {
  show_state(fabric, where);
  show_pkey_entry(fabric, where);
  if (port_at(fabric, where).link_layer == LinkLayer::kInfiniBand) show_lid_of(fabric, where);
  for (std::uint32_t index = 0; index < port_at(fabric, where).gid_table_len; ++index)
    show_gid_entry(fabric, where, index);
}

void report_state(const Fabric& fabric, PortRef where) {
  PortRecord& port = port_at(fabric, where);
  const bool is_hidden = fabric.header().devices[where.device].hides_events.load() != 0;
  for (bool up = is_up(port); (port.reported_down.load() == 0) != up; up = is_up(port)) {
    if (!is_hidden) report_event(fabric, where, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    port.reported_down.store(up ? 0 : 1);
  }
}

void report_pkey(const Fabric& fabric, PortRef where) {
  PortRecord& port = port_at(fabric, where);
  for (std::uint32_t pkey = port.pkey.load(); port.reported_pkey.load() != pkey;
       pkey = port.pkey.load()) {
    report_event(fabric, where, IBV_EVENT_PKEY_CHANGE);
    port.reported_pkey.store(pkey);
  }
}

void report_event(const Fabric& fabric, PortRef where, std::uint32_t event_type) {
  send_port_event(fabric, where.device, is_device_event(event_type) ? 0 : where.port + 1,
                  event_type, fabric.header().devices[where.device].removals.load());
}

}  // namespace softnic
