// SPDX-License-Identifier: Apache-2.0
//
// Reads a machine from the XML that NCCL writes (NCCL_TOPO_DUMP_FILE) and that clouds ship for it
// (NCCL_TOPO_FILE).
//
// Such a file knows NUMA nodes (<cpu>), switches (<pci> with something below), GPUs and NICs, and
// no packages, host bridges or ports. Its links are those that NCCL reckons with: of GPUs the
// present one, of the rest what both ends can; here all are Node::link_now.
//
// Files are written by hand too. What is missing or cannot be read is unknown, with a remark where
// it matters; what NCCL does not know either is left out. An error is what no machine can be.
#pragma once

#include <string>
#include <string_view>

#include "common/base/problem.h"
#include "topology/graph.h"
#include "topology/read/xml.h"

namespace beeline::topology {

// `file` is for messages.
Outcome<GraphParts> read_nccl_xml(std::string_view text, const std::string& file);

// The same from a document that is parsed already.
Outcome<GraphParts> read_nccl_system(const XmlElement& root, const std::string& file);

}  // namespace beeline::topology
