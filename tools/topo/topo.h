// SPDX-License-Identifier: Apache-2.0
//
// `beeline topo`: reads a machine and tells, draws and writes what it is.
#pragma once

#include "tools/topo/options.h"

namespace beeline::topo {

// Returns the exit status.
int run(const Options& options);

}  // namespace beeline::topo
