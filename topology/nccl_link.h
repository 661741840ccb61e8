// SPDX-License-Identifier: Apache-2.0
//
// What NCCL thinks of links and processors: it knows a handful of kinds, and a round number for
// each.
#pragma once

#include "topology/graph.h"

namespace beeline::topology {

// What NCCL reads of the link above a node: what both ends can, else what it does now.
PcieLink link_for_nccl(const Graph& graph, NodeIndex node);

// In GB/s. A rate that NCCL does not know is Gen3's, and lanes that nobody tells are 16.
float nccl_bandwidth(const PcieLink& link) noexcept;

// Of the processors' links to each other. 10 where the processor is unknown, as of most that NCCL
// knows: it would look, but a description may not say.
float nccl_bandwidth(const CpuFacts& cpu) noexcept;

// Of NVLinks, C2C links and so on, all that are side by side.
float nccl_bandwidth(const GpuLink& link, int sm) noexcept;

// Broadcom's large switches show themselves as two levels, and NCCL makes one of them: is this a
// switch of the lower level, below that one?
bool is_same_switch_to_nccl(const Node& upper, const Node& lower) noexcept;

}  // namespace beeline::topology
