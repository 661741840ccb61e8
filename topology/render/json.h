// SPDX-License-Identifier: Apache-2.0
//
// A machine and its assignment as JSON.
#pragma once

#include <string>

#include "topology/assignment.h"

namespace beeline::topology {

// One indented object: source, nodes, gpus (each with its NICs and the reason, its standby NICs,
// its distance from every NIC, and NCCL's choice), spare NICs, slow links, findings, remarks.
// Unknown values are omitted. Nodes are referred to by "id", their index in "nodes".
std::string to_json(const Graph& graph, const Assignment& assignment);

}  // namespace beeline::topology
