// SPDX-License-Identifier: Apache-2.0
//
// Finds a plugin and its function tables by NCCL's rules.
#pragma once

#include <string>

#include "common/base/problem.h"
#include "tools/nccl/table.h"

namespace beeline::nccl {

// A loaded plugin. It is never unloaded.
struct Net {
  ncclNet_v12_t calls{};
  int abi = 0;                  // the version of the plugin's own table
  const void* table = nullptr;  // that table
  void* ctx = nullptr;          // the context, which the caller keeps here after init
  std::string file = {};        // from which the plugin was loaded
};

// `plugin` has the form that NCCL_NET_PLUGIN has: X is tried as it stands, then as
// libnccl-net-X.so. If it is empty, Beeline's own plugin is loaded from beside this program, or
// else from the loader's path. If `abi` is 0, the newest version that the plugin exports is used.
// No function of the plugin is called.
Outcome<Net> load_plugin(const std::string& plugin, int abi);

}  // namespace beeline::nccl
