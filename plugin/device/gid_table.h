// SPDX-License-Identifier: Apache-2.0
//
// Reading a port's GID table.
#pragma once

#include <string>
#include <vector>

#include "plugin/device/gid.h"
#include "plugin/device/port_facts.h"

namespace beeline {

// An address handle names a source GID in eight bits.
inline constexpr int kUsableGids = 256;

// The filled places that a QP can use, by index. With one call where the library and the kernel
// can, else place by place.
std::vector<GidEntry> read_gids(const verbs::Api& api, const PortName& name,
                                const ibv_port_attr& port, const std::string& sysfs_root);

}  // namespace beeline
