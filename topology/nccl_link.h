// SPDX-License-Identifier: Apache-2.0
//
// NCCL's bandwidths for links and processors. NCCL distinguishes a few kinds, and has a round
// number for each.
#pragma once

#include "topology/graph.h"

namespace beeline::topology {

// The link above a node as NCCL reads it: the maximum that both ends support, else the current
// link.
PcieLink link_for_nccl(const Graph& graph, NodeIndex node);

// The bandwidth in GB/s. A rate that NCCL does not know counts as Gen3, and an unknown number of
// lanes as 16.
float nccl_bandwidth(const PcieLink& link) noexcept;

// The bandwidth between processors. It is 10 if the processor is unknown, as for most processors
// that NCCL knows: NCCL reads the processor from the machine, but a description may not contain it.
float nccl_bandwidth(const CpuFacts& cpu) noexcept;

// The bandwidth of all parallel NVLinks, C2C links and so on.
float nccl_bandwidth(const GpuLink& link, int sm) noexcept;

// Broadcom's large switches appear as two levels of switches, and NCCL merges them into one.
// Whether this switch is of the lower level, below that one.
bool is_same_switch_to_nccl(const Node& upper, const Node& lower) noexcept;

}  // namespace beeline::topology
