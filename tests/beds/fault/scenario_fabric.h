// SPDX-License-Identifier: Apache-2.0
//
// The fabric of the kill tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "softnic/fabric/fabric.h"
#include "softnic/spec/fabric_spec.h"

namespace beeline::test {

// Hosts h0 and h1, each with a plain device, one with a limited rate, and one for injected faults.
// Timers run a hundred times as fast.
inline softnic::FabricSpec scenario_fabric() {
  softnic::FabricSpec spec;
  spec.clock_scale = 0.01;
  for (const char* host_name : {"h0", "h1"}) {
    softnic::HostSpec host;
    host.name = host_name;
    for (const char* name : {"softnic0", "softnic1", "softnic2"}) {
      softnic::DeviceSpec device;
      device.name = name;
      device.ports.emplace_back();
      host.devices.push_back(device);
    }
    host.devices[1].ports[0].rate_bytes_s = 2'000'000'000;
    host.devices[1].ports[0].latency_ns = 1000;
    spec.hosts.push_back(host);
  }
  softnic::complete(spec);
  return spec;
}

inline bool fabric_exists(const std::string& name) {
  const std::vector<std::string> names = softnic::list_fabrics();
  return std::ranges::find(names, name) != names.end();
}

}  // namespace beeline::test
