// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/device_presence.h"

#include <infiniband/verbs.h>

#include "softnic/fabric/events.h"
#include "softnic/fabric/publish_port.h"
#include "softnic/spec/sysfs_tree.h"

namespace softnic {
namespace {

// Increments the count only if the device is not yet in the wanted state, so two concurrent calls
// count as one removal.
void set_removed(DeviceRecord& device, bool removed) {
  std::uint32_t count = device.removals.load();
  while (is_removed_count(count) != removed &&
         !device.removals.compare_exchange(count, count + 1)) {
  }
}

// Sends one event for every removal; two if a process died before it recorded the event. The event
// is also sent after the device is back, because contexts from before the removal are still dead.
void report_removal(const Fabric& fabric, std::uint32_t device) {
  DeviceRecord& record = fabric.header().devices[device];
  const std::uint32_t count = record.removals.load();
  const std::uint32_t last_removal = is_removed_count(count) ? count : count - 1;
  if (count == 0 || record.reported_removals.load() == last_removal) return;
  send_port_event(fabric, device, 0, IBV_EVENT_DEVICE_FATAL, last_removal);
  record.reported_removals.store(last_removal);
}

// Derives port faults and sysfs entries from the count, and repeats that if the count has changed
// in the meantime.
void apply_removal_count(const Fabric& fabric, std::uint32_t device) {
  FabricHeader& header = fabric.header();
  DeviceRecord& record = header.devices[device];
  bool removed = false;
  do {
    removed = is_removed(record);
    for (std::uint32_t port = 0; port < record.port_count; ++port) {
      if (removed) {
        record.ports[port].faults.fetch_or(kFaultRemoved);
      } else {
        record.ports[port].faults.fetch_and(~std::uint32_t{kFaultRemoved});
      }
    }
    header.generation.fetch_add(1);
    show_device(fabric.sysfs_files(header.hosts[record.host].name), record.name, !removed);
    for (std::uint32_t port = 0; !removed && port < record.port_count; ++port)
      show_port(fabric, {device, port});  // it may have changed while the device was removed
  } while (is_removed(record) != removed);
}

void make_removed(const Fabric& fabric, std::uint32_t device, bool removed) {
  set_removed(fabric.header().devices[device], removed);
  apply_removal_count(fabric, device);
  report_removal(fabric, device);
}

}  // namespace

void remove_device(const Fabric& fabric, std::uint32_t device) {
  make_removed(fabric, device, true);
}
void return_device(const Fabric& fabric, std::uint32_t device) {
  make_removed(fabric, device, false);
}

}  // namespace softnic
