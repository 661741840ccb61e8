// SPDX-License-Identifier: Apache-2.0
//
// Parses the file first, so that hwloc only gets XML that is well-formed, small and without
// entities.
#include "topology/read/file.h"

#include "topology/read/hwloc_reader.h"
#include "topology/read/nccl_xml.h"
#include "topology/read/xml.h"

namespace beeline::topology {
Outcome<GraphParts> read_topology_file(const std::string& path) {
  XmlLimits limits;
  limits.doctype = Doctype::kNameOnly;
  const std::string text = BL_TRY(read_whole_file(path, limits.bytes));
  const XmlElement root = BL_TRY(parse_xml(text, path, limits));
  if (root.name == "system") return read_nccl_system(root, path);
  if (root.name == "topology") return read_hwloc_xml(text, path);
  return fail(path + ":" + std::to_string(root.line) + ": <" + root.name +
              "> is neither NCCL's <system> nor hwloc's <topology>; NCCL writes such a file with "
              "NCCL_TOPO_DUMP_FILE, hwloc with lstopo --of xml");
}

}  // namespace beeline::topology
