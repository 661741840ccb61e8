// SPDX-License-Identifier: Apache-2.0
//
// Writes a machine as the XML that NCCL takes (NCCL_TOPO_FILE), drawn as NCCL itself would draw it:
// processors by NUMA node, one <pci> for each switch and none for the ports around it, GPUs and
// NICs. What else there is has no part in what NCCL decides, and NCCL takes few elements: left out.
//
// Distances stay what they are in NCCL's words. A port that several devices share without a switch
// is drawn as one, since it is where they meet.
#pragma once

#include <string>

#include "topology/graph.h"

namespace beeline::topology {

// 1 for NCCL, or 2 for RCCL: the version of the file that was read, else by the vendor of the GPUs.
// NCCL and RCCL refuse each other's version.
int nccl_xml_version(const Graph& graph) noexcept;

// read_nccl_xml() reads it back, and writing the result gives the same file. Version 0: as above.
std::string write_nccl_xml(const Graph& graph, int version = 0);

}  // namespace beeline::topology
