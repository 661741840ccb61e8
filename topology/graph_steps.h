// SPDX-License-Identifier: Apache-2.0
//
// The steps of Graph::make, each for itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/problem.h"
#include "topology/node.h"

namespace beeline::topology {

// Are these nodes one tree of things that can exist? The steps below trust that.
Outcome<void> check_nodes(const std::vector<Node>& nodes);

// Names come from files and firmware, and end on terminals: '?' instead of control characters.
void clean_texts(std::vector<Node>& nodes);
void clean_text(std::string& text) noexcept;

// The same nodes in the order that Graph::make promises.
std::vector<Node> in_order(std::vector<Node> nodes);

// Which NUMA node everything belongs to. Takes nodes in order, may leave them out of it.
void settle_numa(std::vector<Node>& nodes, std::vector<std::string>& remarks);

// Processors of what does not say: those of the next thing above that does, the machine excepted.
void inherit_cpus(std::vector<Node>& nodes);

// What each bridge is. Takes nodes in order.
void settle_ports(std::vector<Node>& nodes);

}  // namespace beeline::topology
