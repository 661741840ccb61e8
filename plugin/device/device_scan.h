// SPDX-License-Identifier: Apache-2.0
//
// The scan that fills a DeviceTable with devices and findings. It writes nothing to the log.
#pragma once

#include <string>
#include <vector>

#include "plugin/device/device_table.h"
#include "plugin/device/hca_filter.h"
#include "plugin/device/port_facts.h"

namespace beeline {

class DeviceScan {
 public:
  DeviceScan(const verbs::Api& api, const DeviceOptions& options);

  Result<std::unique_ptr<DeviceTable>> run();

 private:
  void visit(ibv_device* device);
  void visit_ports(DeviceContext& context, const ibv_device_attr& attr, Transport ib_or_iwarp);
  void visit_port(DeviceContext& context, const ibv_device_attr& attr, Transport ib_or_iwarp,
                  std::uint8_t port);
  void fill(Device& device, const ibv_device_attr& attr, PortReading reading,
            Transport ib_or_iwarp) const;
  void find(Finding finding) { table_->findings_.push_back(std::move(finding)); }
  void leave_out_by_filter(const std::string& subject);
  void make_fork_safe();
  void finish();
  void explain_no_device();

  const verbs::Api& api_;
  const DeviceOptions& options_;
  HcaFilter filter_;
  std::unique_ptr<DeviceTable> table_;
};

// A port that cannot carry traffic now, and what a person can do about it.
Finding inactive_port(const Device& device);

// Steps of finish(), each for itself. Order by PCI address, port, name; numbers in names compare as
// numbers.
void sort_devices(std::vector<Device>& devices);
// Numbers the ports of each card, which NCCL tells apart by that number. Soft devices, and those at
// different places, may share a GUID, or have none: those get another one.
void tell_ports_apart(std::vector<Device>& devices);

}  // namespace beeline
