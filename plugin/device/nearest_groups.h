// SPDX-License-Identifier: Apache-2.0
//
// Divides the ports of a host into groups whose members are near each other, for BEELINE_RAILS.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plugin/device/device.h"

namespace beeline {

// Each group has at most `most` ports, all of one NUMA node and of one transport. Ports of one card
// come together first, then those below one PCIe switch, then those below one host bridge.
//
// The result depends only on the places of the ports in the machine, and not on the order of
// `devices`' names or on chance: on hosts that are built alike, port i of group k is the same port,
// so that a connection between them joins ports of one network. Groups are in the order of their
// first members, and members in the order of the rails in the device filter, then of `devices`.
std::vector<std::vector<const Device*>> group_nearest(std::span<const Device> devices,
                                                      std::size_t most);

}  // namespace beeline
