// SPDX-License-Identifier: Apache-2.0
//
// Devices that were removed from their host, or failed for good, and came back.
#include <algorithm>
#include <utility>
#include <vector>

#include "common/check/assert.h"
#include "plugin/device/device_table.h"
#include "plugin/device/netdev.h"
#include "plugin/device/port_facts.h"
#include "plugin/verbs/create.h"
#include "plugin/verbs/query.h"

namespace beeline {
namespace {

// The newest Device of each port whose context this is.
std::vector<const Device*> ports_of(const DeviceContext& context, std::span<const Device> known) {
  std::vector<const Device*> ports;
  for (const Device& first : known) {
    const Device& device = first.newest();
    if (device.context == &context) ports.push_back(&device);
  }
  return ports;
}

// The properties of the hardware have not changed. Its addresses may have.
Result<Device> port_again(const Device& former, DeviceContext& context,
                          const std::string& sysfs_root) {
  auto reading =
      BL_TRY(read_port_facts(former.api(), {context.raw(), former.ibdev, former.port}, sysfs_root));
  Device device = former;
  device.facts = std::move(reading.facts);
  device.context = &context;
  device.history = std::make_shared<PortHistory>();
  device.successor = std::make_shared<Device::Successor>(nullptr);
  return device;
}

bool has_link(const Device& port, const DeviceContext& context) {
  const auto found = verbs::query_port(port.api(), context.raw(), port.port);
  return found && found->attr.state == IBV_PORT_ACTIVE;
}

}  // namespace

// A device that has no link yet is kept open, so that a look for the link is one call.
Result<DeviceTable::Reopened> DeviceTable::reopen(const DeviceContext& gone) const {
  BL_ASSERT(gone.is_gone(), "a device is opened again after it has gone");
  const std::vector<const Device*> former = ports_of(gone, devices_);
  if (former.empty()) return Reopened{};
  const auto any_link = [&](const DeviceContext& context) {
    return std::ranges::any_of(former,
                               [&](const Device* port) { return has_link(*port, context); });
  };
  const verbs::DeviceList list = BL_TRY(verbs::DeviceList::get(*api_));
  const auto found = std::ranges::find_if(list.devices(), [&](ibv_device* device) {
    return api_->get_device_name(device) == gone.ibdev();
  });
  if (found == list.devices().end()) {
    without_link_.erase(gone.ibdev());
    return Reopened{};
  }
  // Another device may have got the name.
  const Device& first = *former.front();
  if (pci_path_of(sysfs_root_, first.ibdev, first.netdev) != first.pci_path) return Reopened{};
  Returned opened = std::exchange(without_link_[gone.ibdev()], {});
  without_link_.erase(gone.ibdev());
  if (opened.context == nullptr) {
    opened.context =
        std::make_unique<DeviceContext>(BL_TRY(verbs::open_device(*api_, *found)), gone.ibdev(),
                                        static_cast<int>(contexts_.size() + returned_.size()));
  }
  // Its addresses are known once it has a link.
  if (!any_link(*opened.context)) {
    without_link_[gone.ibdev()] = std::move(opened);
    return Reopened{.lacks_link = true};
  }
  for (const Device* const port : former) {
    opened.ports.push_back(BL_TRY(port_again(*port, *opened.context, sysfs_root_)));
  }
  Returned& kept = returned_.emplace_back(std::move(opened));
  for (std::size_t i = 0; i < former.size(); ++i) {
    former[i]->successor->store(&kept.ports[i], std::memory_order_release);
  }
  return Reopened{.context = kept.context.get()};
}

}  // namespace beeline
