// SPDX-License-Identifier: Apache-2.0
//
// A machine as a picture: NUMA nodes, host bridges, switches, GPUs and NICs, the width of each
// link, a line from each GPU to its NICs, and slow links in red.
#pragma once

#include <string>

#include "topology/assignment.h"

namespace beeline::topology {

// A whole SVG file. The same machine gives the same bytes.
std::string to_svg(const Graph& graph, const Assignment& assignment);

}  // namespace beeline::topology
