// SPDX-License-Identifier: Apache-2.0
//
// The NICs in the topology of this machine: which processors are near them, and which PCIe links
// are slow.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/finding.h"
#include "plugin/device/device.h"
#include "topology/graph.h"

namespace beeline {

// The topology of this machine, read from `sysfs_root`; nothing if it makes no sense. Adds findings
// topology-remark and topology-not-understood.
std::optional<topology::Graph> read_machine(const std::string& sysfs_root,
                                            std::vector<Finding>& findings);

// The nodes of the devices, each once; devices without a node are left out.
std::vector<topology::NodeIndex> nodes_of(const topology::Graph& graph,
                                          std::span<const Device> devices);

// The processors near any of these NICs, "0-31,64-95"; empty: not known.
std::string cpus_near(const topology::Graph& graph, const std::vector<topology::NodeIndex>& nics);

// One finding "slow-link" for each link that is slower than it should be, among the links of these
// NICs, of GPUs, and of the switches above them.
std::vector<Finding> slow_links(const topology::Graph& graph,
                                const std::vector<topology::NodeIndex>& nics);

// A finding "hidden-tree" if the machine has GPUs and NICs and hides the distances between them.
std::optional<Finding> hidden_tree(const topology::Graph& graph,
                                   const std::vector<topology::NodeIndex>& nics);

}  // namespace beeline
