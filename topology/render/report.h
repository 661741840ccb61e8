// SPDX-License-Identifier: Apache-2.0
//
// Text about a machine: its devices, and its findings.
#pragma once

#include <string>

#include "topology/findings.h"
#include "topology/graph.h"
#include "topology/render/table.h"

namespace beeline::topology {

// GPU0    0000:1a:00.0  NVIDIA H100
// mlx5_0  0000:1b:00.0  400 Gb/s
std::string devices_text(const Graph& graph);

// "GPU0 to GPU7: NVIDIA H100; 18 NVLinks to switches": one line for equal GPUs.
std::string models_text(const Graph& graph);

// "400 Gb/s InfiniBand", "100 Gb/s Ethernet + 100 Gb/s Ethernet (down)"; empty if nothing
// is known.
std::string ports_text(const Node& node);

// A table of the NICs, for a machine without GPUs; empty if there is none.
std::string nics_text(const Graph& graph, std::size_t width = kAnyWidth);

// A line for each finding of that severity, one line for several devices with the same finding;
// empty if there is none. GPUs whose NIC is far are left out, because the verdict and the
// assignment name them.
std::string findings_text(const Graph& graph, Severity severity);

}  // namespace beeline::topology
