// SPDX-License-Identifier: Apache-2.0
//
// Which RDMA devices this host has and which of them the job may use. Made once per process.
//
// Lifecycle: the devices, contexts and PDs live until the table dies. The process-wide runtime
// leaks its table on purpose: at exit other threads may still be inside a verbs call. Threads:
// const after the scan; read_port and DeviceContext::pd may be called from any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/device/device.h"

namespace beeline {

enum class Tri : std::int8_t { kAuto = -1, kOff = 0, kOn = 1 };

struct DeviceOptions {
  std::string hca_filter;  // hca_filter.h
  std::string sysfs_root = "/sys";
  Tri adaptive_routing = Tri::kAuto;  // auto: on for InfiniBand, off for Ethernet
  Tri relaxed_ordering = Tri::kAuto;  // auto: on where the library can
  bool allow_iwarp = false;           // there is a way to connect such ports
  bool pci_order = true;              // false: the order of libibverbs
};

// A port that is there and not used, and why.
struct UnusedPort {
  enum class Why : std::uint8_t {
    kFiltered,
    kNotActive,
    kUnsupportedTransport,
    kFailed,  // it could not be opened or queried
  };
  std::string ibdev;
  std::uint8_t port = 0;  // 0: the whole device
  Why why = Why::kFiltered;
  std::string text;  // for people: what, and what to do
};

class DeviceTable {
 public:
  // Opens every device, after one ibv_fork_init whose refusal is only noted, and raises the soft
  // limit of locked memory to the hard one. Logs what a person should know; a device that fails is
  // left out. An error only when libibverbs cannot list devices at all. No device is a success.
  // `api` must outlive the table.
  static Result<std::unique_ptr<DeviceTable>> scan(const verbs::Api& api,
                                                   const DeviceOptions& options);
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;

  // By PCI address, then port, then name.
  std::span<const Device> devices() const noexcept { return devices_; }
  std::span<const UnusedPort> unused() const noexcept { return unused_; }
  // Those that have a device in the table. DeviceContext::index() is the place in here.
  std::span<const std::unique_ptr<DeviceContext>> contexts() const noexcept { return contexts_; }
  const verbs::Api& api() const noexcept { return *api_; }

  // The port as it is now.
  Result<PortFacts> read_port(const Device& device) const;

 private:
  friend class DeviceScan;
  explicit DeviceTable(const verbs::Api& api) : api_(&api) {}

  const verbs::Api* api_;
  std::string sysfs_root_;
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
  std::vector<Device> devices_;
  std::vector<UnusedPort> unused_;
};

}  // namespace beeline
