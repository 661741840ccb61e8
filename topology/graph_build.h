// SPDX-License-Identifier: Apache-2.0
//
// The functions that Graph::make calls, one after the other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/problem.h"
#include "topology/node.h"

namespace beeline::topology {

// Fails unless the nodes form one tree that a machine can have. The other functions rely on that.
Outcome<void> check_nodes(const std::vector<Node>& nodes);

// Replace control characters by '?'. Names come from files and firmware, and are shown on
// terminals.
void clean_texts(std::vector<Node>& nodes);
void clean_text(std::string& text) noexcept;

// Returns the same nodes in the order that Graph::make promises.
std::vector<Node> in_order(std::vector<Node> nodes);

// Sets the NUMA node of every node. Expects sorted nodes, and may leave them unsorted.
void infer_numa(std::vector<Node>& nodes, std::vector<std::string>& remarks);

// Gives I/O nodes without processors those of the nearest node above, the machine excepted.
void inherit_cpus(std::vector<Node>& nodes);

// Sets the unknown BridgePort of each bridge. Expects sorted nodes.
void infer_ports(std::vector<Node>& nodes);

}  // namespace beeline::topology
