// SPDX-License-Identifier: Apache-2.0
//
// Describes the links of a GPU other than PCIe (NVLink, xGMI, C2C).
#pragma once

#include <string>

#include "topology/graph.h"

namespace beeline::topology {

// From one GPU to all others: "18 NVLinks to switches", "7 xGMI links to 7 GPUs", "C2C to
// the processor". Empty if there is none.
std::string gpu_links_text(const Node& gpu);

// Between two GPUs, in the terms of nvidia-smi: "NV18", directly or through switches; "XGMI"; empty
// if only PCIe connects them.
std::string gpu_link_name(const Node& a, const Node& b);

}  // namespace beeline::topology
