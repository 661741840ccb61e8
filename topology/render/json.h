// SPDX-License-Identifier: Apache-2.0
//
// A machine and its assignment for programs.
#pragma once

#include <string>

#include "topology/assignment.h"

namespace beeline::topology {

// One object, indented: source, nodes, gpus (each with its distance to every NIC, its NICs, why,
// what stands by, and what NCCL takes), spare NICs, slow links, findings, remarks. What is unknown
// is left out, so a key that is there holds a fact. Nodes are named by "id", their place in
// "nodes".
std::string to_json(const Graph& graph, const Assignment& assignment);

}  // namespace beeline::topology
