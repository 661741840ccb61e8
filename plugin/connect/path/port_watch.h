// SPDX-License-Identifier: Apache-2.0
//
// The ports in use: what they are like now, and what happens to them.
//
// A port's tables are read at its first use and again after an event that says they changed, not
// with every connection: reading a GID table can take hundreds of system calls.
// Threads: the control thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "plugin/connect/socket/poller.h"
#include "plugin/device/device_table.h"
#include "plugin/verbs/async_event.h"

namespace beeline {

// Told on the control thread.
using DeviceEventHook = std::function<void(const DeviceContext&, const verbs::AsyncEvent&)>;

class PortWatch {
 public:
  PortWatch(const DeviceTable& table, Poller& poller, DeviceEventHook hook)
      : table_(&table), poller_(&poller), hook_(std::move(hook)) {}
  PortWatch(const PortWatch&) = delete;
  PortWatch& operator=(const PortWatch&) = delete;
  ~PortWatch();

  // Watches the device from now on; an error once it is gone. Valid until control returns to the
  // poller.
  Result<const PortFacts*> facts(const Device& device);

 private:
  void watch(DeviceContext& context);
  void read_events(DeviceContext& context);
  void handle(DeviceContext& context, const verbs::AsyncEvent& event);

  const DeviceTable* table_;
  Poller* poller_;
  const DeviceEventHook hook_;
  std::map<int, PortFacts> facts_;  // by the device's index
  std::map<DeviceContext*, Poller::Key> watched_;
};

}  // namespace beeline
