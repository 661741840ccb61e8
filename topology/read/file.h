// SPDX-License-Identifier: Apache-2.0
//
// Reads a machine from a file, NCCL's or hwloc's XML: the root tells which.
#pragma once

#include <string>

#include "common/base/problem.h"
#include "topology/graph.h"

namespace beeline::topology {

// The error names file, cause and what to do, and the line where there is one.
Outcome<GraphParts> read_topology_file(const std::string& path);

}  // namespace beeline::topology
