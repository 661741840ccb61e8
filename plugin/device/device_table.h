// SPDX-License-Identifier: Apache-2.0
//
// The RDMA devices of this host that the job may use. There is one table in each process.
//
// Lifecycle: devices, contexts and protection domains exist as long as the table. The runtime never
// destroys its table, because at exit other threads may still be inside a verbs call. Threads:
// const after the scan, but for reopen(); read_port() and DeviceContext::pd() may be
// called from any thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/finding.h"
#include "plugin/device/device.h"
#include "plugin/device/rail_devices.h"

namespace beeline {

struct DeviceOptions {
  std::string hca_filter;  // hca_filter.h
  std::string sysfs_root = "/sys";
  std::optional<bool> adaptive_routing = {};  // empty: on for InfiniBand, off for Ethernet
  std::optional<bool> relaxed_ordering = {};  // empty: on if the library supports it
  bool allow_iwarp = false;                   // librdmacm is there to connect iWARP ports
  bool pci_order = true;                      // false: in libibverbs' order
};

class DeviceTable {
 public:
  // Calls ibv_fork_init, raises the soft limit on locked memory to the hard one, and opens every
  // device. A device that fails is left out, and a table without devices is a success: findings()
  // has the reasons. The only error is that libibverbs cannot list devices. `api` must outlive the
  // table.
  static Result<std::unique_ptr<DeviceTable>> scan(const verbs::Api& api,
                                                   const DeviceOptions& options);
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;

  // By PCI address, then port, then name.
  std::span<const Device> devices() const noexcept { return devices_; }
  // One device of the table as the only rail of a comm.
  RailDevices alone(const Device& device) const noexcept {
    return {&pointers_[static_cast<std::size_t>(device.index)], 1};
  }
  // Why devices and ports were left out, and what else the scan found. Their ids:
  // device-filter-not-understood, device-filter-leaves-none, device-filtered, device-failed,
  // device-unsupported, port-not-active, no-rdma-device, fork-init-failed, memlock-raised.
  std::span<const Finding> findings() const noexcept { return findings_; }
  // Whether one of these warnings is the reason why the table has no device.
  bool has_warned_of_no_device() const noexcept;
  // The contexts of the scan that have a device in the table. DeviceContext::index() is the index
  // in it. Those of returned devices have the indices behind.
  std::span<const std::unique_ptr<DeviceContext>> contexts() const noexcept { return contexts_; }
  const verbs::Api& api() const noexcept { return *api_; }

  // --- For the control thread only ---
  // Opens a device again that was removed from its host, or failed for good, and came back. The old
  // context stays unusable, so the device gets a new one, and each of its ports a new Device, which
  // Device::newest() of the former one returns. What was opened stays open, because other threads
  // may still use it.
  struct Reopened {
    DeviceContext* context = nullptr;  // null: it is not there yet, has no link, or is another one
    bool lacks_link = false;           // it is there
  };
  Result<Reopened> reopen(const DeviceContext& gone) const;
  // Calls `take` for each port of the context.
  template <class Take>
  void each_port_of(const DeviceContext& context, Take&& take) const {
    for (const Device& device : devices_) {
      if (device.context == &context) take(device);
    }
    for (const Returned& returned : returned_) {
      if (returned.context.get() != &context) continue;
      for (const Device& port : returned.ports) take(port);
    }
  }

  // Reads the current state of the port.
  Result<PortFacts> read_port(const Device& device) const;

 private:
  friend class DeviceScan;
  explicit DeviceTable(const verbs::Api& api) : api_(&api) {}

  struct Returned {
    std::unique_ptr<DeviceContext> context;
    std::deque<Device> ports;  // stay where they are
  };

  const verbs::Api* api_;
  std::string sysfs_root_;
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
  std::vector<Device> devices_;
  mutable std::deque<Returned> returned_;
  mutable std::map<std::string, Returned>
      without_link_;                     // by ibdev; not in use yet, and without ports
  std::vector<const Device*> pointers_;  // to devices_, by index
  std::vector<Finding> findings_;
};

}  // namespace beeline
