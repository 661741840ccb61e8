// SPDX-License-Identifier: Apache-2.0
//
// What the place of the NICs in this machine means: where the control thread belongs, and which
// GPU or link is badly placed.
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

// As virtual machines do: then distances say nothing.
bool hides_its_tree(const topology::Graph& graph);

// The devices' nodes, each once; those without one are left out.
std::vector<topology::NodeIndex> nodes_of(const topology::Graph& graph,
                                          std::span<const Device> devices);

// The processors near any of them, "0-31,64-95"; empty: not known.
std::string cpus_near(const topology::Graph& graph, const std::vector<topology::NodeIndex>& nics);

// One line for people for each link that is slower than it should be.
std::vector<std::string> slow_links(const topology::Graph& graph,
                                    const std::vector<topology::NodeIndex>& nics);

// One line for each GPU and the NIC it would use, where NCCL's default is to carry the data through
// host memory; or one in all, where the machine hides its PCI tree.
std::vector<std::string> distant_pairs(const topology::Graph& graph,
                                       const std::vector<topology::NodeIndex>& nics);

}  // namespace beeline
