// SPDX-License-Identifier: Apache-2.0
//
// What a person wants to know of a machine, as lines: who is who, and what is wrong.
#pragma once

#include <string>
#include <vector>

#include "topology/graph.h"
#include "topology/link_state.h"

namespace beeline::topology {

// GPU0    0000:1a:00.0  NVIDIA H100
// mlx5_0  0000:1b:00.0  400 Gb/s
std::string devices_text(const Graph& graph);

// "400 Gb/s", "100 Gb/s + 100 Gb/s"; empty where no port's speed is known.
std::string ports_text(const Node& node);

// A line for each link above a GPU or an RDMA NIC, or on the way to one, that is slower than it
// should be; empty if there is none.
std::string slow_links_text(const Graph& graph);

}  // namespace beeline::topology
