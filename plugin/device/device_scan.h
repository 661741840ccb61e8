// SPDX-License-Identifier: Apache-2.0
//
// The scan that fills a DeviceTable with devices and findings. It writes nothing to the log.
#pragma once

#include <cstdint>
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
  void scan_device(ibv_device* device);
  void scan_port(DeviceContext& context, const ibv_device_attr& attr, Transport ib_or_iwarp,
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

// --- Steps of finish() ---

// Sorts by PCI address, then port, then name. Numbers in names are compared as numbers.
void sort_devices(std::vector<Device>& devices);
// Sets card_port, by which NCCL distinguishes the ports of a card. Soft devices and devices at
// different places may have the same GUID or none; they get another one.
void number_ports(std::vector<Device>& devices);

}  // namespace beeline
