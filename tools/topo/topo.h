// SPDX-License-Identifier: Apache-2.0
//
// `beeline topo`: reads a machine, and shows, draws or writes it.
#pragma once

#include "tools/topo/options.h"

namespace beeline::topo {

// Returns the exit status.
int run(const Options& options);

}  // namespace beeline::topo
