// SPDX-License-Identifier: Apache-2.0
//
// Reading a port: verbs first, sysfs for what verbs does not tell.
#pragma once

#include <string>

#include "plugin/device/device.h"

namespace beeline {

// How a port is named to both.
struct PortName {
  ibv_context* context = nullptr;
  std::string ibdev;
  std::uint8_t port = 1;
};

struct PortReading {
  PortFacts facts;
  std::uint8_t link_layer = IBV_LINK_LAYER_UNSPECIFIED;
  std::uint32_t max_msg_bytes = 0;
};
Result<PortReading> read_port_facts(const verbs::Api& api, const PortName& name,
                                    const std::string& sysfs_root);

}  // namespace beeline
