// SPDX-License-Identifier: Apache-2.0
//
// Finding a plugin and its tables, by NCCL's rules.
#pragma once

#include <string>

#include "tools/cli/exit_status.h"
#include "tools/perf/net_table.h"

namespace beeline::perf {

// `plugin` as NCCL_NET_PLUGIN takes it: X is tried as it stands, then as libnccl-net-X.so. Empty:
// our own plugin, from beside this program or else from the loader's path. `abi` 0: the newest that
// the plugin exports. Nothing is called yet.
Outcome<Net> load_plugin(const std::string& plugin, int abi);

}  // namespace beeline::perf
