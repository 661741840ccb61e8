// SPDX-License-Identifier: Apache-2.0
//
// Answers about a machine, as lines that a test can compare with expected lines.
#pragma once

#include <string>
#include <vector>

#include "topology/assignment.h"

namespace beeline::topology {

using Lines = std::vector<std::string>;

// Their labels: "mlx5_0 mlx5_1".
std::string labels_of(const Graph& graph, const std::vector<NodeIndex>& nodes);

// A line for each GPU with its distance from every GPU and every NIC, a letter for each: "XN PN". X
// is the GPU itself, P is PIX, B is PXB, H is PHB, N is NODE, S is SYS.
Lines distances_of(const Graph& graph);
// A line for each GPU: "PIX mlx5_0 mlx5_1".
Lines nics_of(const Graph& graph, const AssignOptions& options = {});
// A line for each NIC that serves no GPU: "mlx5_3: there is no GPU".
Lines spares_of(const Graph& graph);

}  // namespace beeline::topology
