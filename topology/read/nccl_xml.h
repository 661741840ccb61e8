// SPDX-License-Identifier: Apache-2.0
//
// Reads a machine from the XML that NCCL writes (NCCL_TOPO_DUMP_FILE) and that clouds provide for
// it (NCCL_TOPO_FILE).
//
// Such a file contains NUMA nodes (<cpu>), switches (<pci> with children), GPUs and NICs, but no
// packages, host bridges or bridge ports. Its links are those with which NCCL computes: the current
// link of GPUs, and the maximum of both ends for other devices. Here all are Node::link_now.
//
// People write such files by hand, too. Data that is missing or cannot be parsed is unknown, with a
// remark if it matters; elements that NCCL does not know are ignored. Only an impossible machine is
// an error.
#pragma once

#include <string>
#include <string_view>

#include "common/base/problem.h"
#include "topology/graph.h"
#include "topology/read/xml.h"

namespace beeline::topology {

// `file` is for messages.
Outcome<GraphParts> read_nccl_xml(std::string_view text, const std::string& file);

// The same from a parsed document.
Outcome<GraphParts> read_nccl_system(const XmlElement& root, const std::string& file);

}  // namespace beeline::topology
