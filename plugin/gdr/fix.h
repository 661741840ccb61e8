// SPDX-License-Identifier: Apache-2.0
//
// Finds out how the user can make a GPU and a NIC work together.
#pragma once

#include <string>

#include "plugin/gdr/prove.h"

namespace beeline::gdr {

// Whether sysfs shows a peer-memory module. It may still not work.
bool is_peer_memory_loaded(const std::string& sysfs_root);

// One sentence with a command or with what to install; empty if nothing helps.
std::string fix_for(const Proof& proof, const gpu::Cuda& cuda, const gpu::Gpu& gpu,
                    const std::string& sysfs_root);

}  // namespace beeline::gdr
