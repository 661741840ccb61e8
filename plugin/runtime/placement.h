// SPDX-License-Identifier: Apache-2.0
//
// What the place of the NICs in this machine means: where the control thread belongs, and which
// link is slow.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/device/device.h"
#include "topology/graph.h"

namespace beeline {

// The machine, from where `sysfs_root` says. What it could not see is logged; nothing when it makes
// no sense of it at all.
std::optional<topology::Graph> read_machine(const std::string& sysfs_root);

// The devices' nodes, each once; those without one are left out.
std::vector<topology::NodeIndex> nodes_of(const topology::Graph& graph,
                                          std::span<const Device> devices);

// The processors near any of them, "0-31,64-95"; empty: not known.
std::string cpus_near(const topology::Graph& graph, const std::vector<topology::NodeIndex>& nics);

// Returns one line for each link that is slower than it should be, among the links of these NICs,
// of GPUs, and of the switches above them.
std::vector<std::string> slow_links(const topology::Graph& graph,
                                    const std::vector<topology::NodeIndex>& nics);

// Returns a line if the machine has GPUs and NICs and hides the distances between them.
std::optional<std::string> hidden_tree_advice(const topology::Graph& graph,
                                              const std::vector<topology::NodeIndex>& nics);

}  // namespace beeline
