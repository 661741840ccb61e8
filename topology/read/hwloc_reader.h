// SPDX-License-Identifier: Apache-2.0
//
// Reads a machine through hwloc: this one, or one from hwloc's XML (`lstopo --of xml`).
//
// The functions do not use environment variables; hwloc itself reads its own.
#pragma once

#include <string>

#include "common/base/problem.h"
#include "topology/graph.h"

namespace beeline::topology {

// Fails if hwloc is not installed or has another version.
Outcome<GraphParts> read_hwloc();

// Such a file contains neither speeds of network ports nor generations of links. `xml` must be
// well-formed; read_topology_file() checks that.
Outcome<GraphParts> read_hwloc_xml(const std::string& xml, const std::string& file);

}  // namespace beeline::topology
