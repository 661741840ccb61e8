// SPDX-License-Identifier: Apache-2.0
//
// Reads the current state of a port through verbs, and through sysfs for what verbs does not have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/device/device.h"

namespace beeline {

// A port, as verbs and as sysfs name it.
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

// --- Steps of it ---

// An address handle has eight bits for the index of its source GID.
inline constexpr int kUsableGids = 256;

// The valid GIDs that a queue pair can use, by index. One call reads them all if the library and
// the kernel can; otherwise they are read one by one.
std::vector<GidEntry> read_gids(const verbs::Api& api, const PortName& name,
                                const ibv_port_attr& port, const std::string& sysfs_root);

// In Mbit/s, from the codes of ibv_port_attr; speed_ex is 0 if the library has none. 0: unknown
// code.
std::uint32_t link_speed_mbps(std::uint8_t width, std::uint8_t speed, std::uint32_t speed_ex);
// In Mbit/s, from the `rate` file of sysfs: "400 Gb/sec (4X NDR)". 0: not understood.
std::uint32_t parse_rate_mbps(std::string_view text);

}  // namespace beeline
