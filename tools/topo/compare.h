// SPDX-License-Identifier: Apache-2.0
//
// `beeline topo --diff A B`.
#pragma once

#include "tools/topo/options.h"

namespace beeline::topo {

// Tells what differs on stdout. Returns the exit status: 0 where nothing does, 1 where something
// does, kUsage where a machine cannot be read.
int compare(const Options& options);

}  // namespace beeline::topo
