// SPDX-License-Identifier: Apache-2.0
//
// Reads a machine from a file: NCCL's or hwloc's XML, by its root element.
#pragma once

#include <string>

#include "common/base/problem.h"
#include "topology/graph.h"

namespace beeline::topology {

// The error names the file, the cause and the fix, and the line if there is one.
Outcome<GraphParts> read_topology_file(const std::string& path);

}  // namespace beeline::topology
