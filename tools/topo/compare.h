// SPDX-License-Identifier: Apache-2.0
//
// `beeline topo --diff A B`.
#pragma once

#include "tools/topo/options.h"

namespace beeline::topo {

// Prints the differences on stdout. Returns the exit status: 0 if there are none, 1 if there are
// some, kUsage if a machine cannot be read.
int compare(const Options& options);

}  // namespace beeline::topo
