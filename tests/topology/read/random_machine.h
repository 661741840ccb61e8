// SPDX-License-Identifier: Apache-2.0
//
// Machines made at random, with all that a description may tell of them.
#pragma once

#include "topology/graph.h"

namespace beeline::topology {

// A tree as PCIe allows it: a port has functions of one card behind it, or one switch.
GraphParts random_machine(unsigned seed);

}  // namespace beeline::topology
