// SPDX-License-Identifier: Apache-2.0
//
// Writes a machine as the XML that NCCL reads (NCCL_TOPO_FILE), as NCCL itself would describe it:
// processors by NUMA node, one <pci> for each switch and none for its ports, GPUs and NICs. Other
// devices do not affect NCCL's decisions and are omitted, since NCCL accepts a limited number of
// elements.
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
