// SPDX-License-Identifier: Apache-2.0
//
// What a person can do about a GPU and a NIC that do not work together.
#pragma once

#include <string>

#include "plugin/gdr/prove.h"

namespace beeline::gdr {

// A peer-memory module, by its traces. Loaded does not mean that it works.
bool peer_memory_is_loaded(const std::string& sysfs_root);

// One sentence that ends in a command or in what to install; empty where nothing helps.
std::string fix_for(const Proof& proof, const gpu::Cuda& cuda, const gpu::Gpu& gpu,
                    const std::string& sysfs_root);

}  // namespace beeline::gdr
