// SPDX-License-Identifier: Apache-2.0
//
// Random machines with everything that a description may contain. The same seed gives the same
// machine.
#pragma once

#include "topology/graph.h"

namespace beeline::topology {

// A tree as PCIe allows it: a port has functions of one card behind it, or one switch.
GraphParts random_machine(unsigned seed);

}  // namespace beeline::topology
