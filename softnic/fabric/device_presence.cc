// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/device_presence.h"

#include <infiniband/verbs.h>

#include "softnic/fabric/events.h"
#include "softnic/fabric/port_news.h"
#include "softnic/spec/sysfs_tree.h"

namespace softnic {
namespace {

// The count moves on only if the device is not yet as wanted: two that remove it remove it once.
void set_removed(DeviceRecord& device, bool removed) {
  std::uint32_t count = device.removals.load();
  while (means_removed(count) != removed && !device.removals.compare_exchange(count, count + 1)) {
  }
}

// Once for every removal, or twice if who told it died before noting that. Also after the device is
// back: contexts of before the removal are dead all the same.
void tell_removal(const Fabric& fabric, std::uint32_t device) {
  DeviceRecord& record = fabric.header().devices[device];
  const std::uint32_t count = record.removals.load();
  const std::uint32_t last_removal = means_removed(count) ? count : count - 1;
  if (count == 0 || record.told_removals.load() == last_removal) return;
  send_port_event(fabric, device, 0, IBV_EVENT_DEVICE_FATAL, last_removal);
  record.told_removals.store(last_removal);
}

// As with files that show a state: whoever is last looks again.
void follow_count(const Fabric& fabric, std::uint32_t device) {
  FabricHeader& header = fabric.header();
  DeviceRecord& record = header.devices[device];
  bool removed = false;
  do {
    removed = is_removed(record);
    for (std::uint32_t port = 0; port < record.port_count; ++port) {
      if (removed) {
        record.ports[port].trouble.fetch_or(kTroubleGone);
      } else {
        record.ports[port].trouble.fetch_and(~std::uint32_t{kTroubleGone});
      }
    }
    header.generation.fetch_add(1);
    show_device(fabric.sysfs_files(header.hosts[record.host].name), record.name, !removed);
    for (std::uint32_t port = 0; !removed && port < record.port_count; ++port)
      show_port(fabric, {device, port});  // what changed while nobody could see it
  } while (is_removed(record) != removed);
}

void make_removed(const Fabric& fabric, std::uint32_t device, bool removed) {
  set_removed(fabric.header().devices[device], removed);
  follow_count(fabric, device);
  tell_removal(fabric, device);
}

}  // namespace

void remove_device(const Fabric& fabric, std::uint32_t device) {
  make_removed(fabric, device, true);
}
void return_device(const Fabric& fabric, std::uint32_t device) {
  make_removed(fabric, device, false);
}

}  // namespace softnic
