// SPDX-License-Identifier: Apache-2.0
//
// The links of GPUs other than PCIe (NVLink, xGMI, C2C), as text.
#pragma once

#include <string>

#include "topology/graph.h"

namespace beeline::topology {

// Of one GPU to all of its neighbours: "18 NVLinks to switches", "7 xGMI links to 7 GPUs", "C2C to
// the processor". Empty where there is none.
std::string gpu_links_text(const Node& gpu);

// Between two GPUs, in nvidia-smi's words: "NV18", directly or by switches; "XGMI"; empty where
// only PCIe joins them.
std::string gpu_link_word(const Node& a, const Node& b);

}  // namespace beeline::topology
