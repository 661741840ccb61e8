// SPDX-License-Identifier: Apache-2.0
//
// Reads the machine that the options name.
#pragma once

#include "tools/cli/exit_status.h"
#include "tools/topo/options.h"
#include "topology/graph.h"

namespace beeline::topo {

// The live machine is the one that the plugin would see: BEELINE_SYSFS_ROOT counts.
Outcome<topology::Graph> read_machine(const Options& options);

}  // namespace beeline::topo
