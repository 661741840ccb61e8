// SPDX-License-Identifier: Apache-2.0
//
// Reads a machine through hwloc: this one, or one from hwloc's XML (`lstopo --of xml`).
//
// Neither sets or reads a variable of the environment; hwloc itself reads its own.
#pragma once

#include <string>

#include "common/base/problem.h"
#include "topology/graph.h"

namespace beeline::topology {

// The error is one line for people: hwloc is not there, or of another version.
Outcome<GraphParts> read_hwloc();

// Such a file knows neither speeds of network ports nor generations of links. `xml` is well-formed:
// who takes files from strangers checks them before (read_topology_file).
Outcome<GraphParts> read_hwloc_xml(const std::string& xml, const std::string& file);

}  // namespace beeline::topology
