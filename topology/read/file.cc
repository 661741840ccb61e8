// SPDX-License-Identifier: Apache-2.0
//
// Looks at a file before anyone else does: hwloc gets only what is well-formed, small, and without
// entities.
#include "topology/read/file.h"

#include "topology/read/hwloc_reader.h"
#include "topology/read/nccl_xml.h"
#include "topology/read/words.h"
#include "topology/read/xml.h"

namespace beeline::topology {
namespace {

// hwloc 2 reads what it wrote, and what version 1 did (which names none).
Result<void, std::string> check_hwloc_version(const XmlElement& root, const std::string& path) {
  const std::string* const version = root.find("version");
  if (version == nullptr) return {};
  const int major = parse_int(version->substr(0, version->find('.'))).value_or(0);
  if (major <= 2) return {};
  return fail(path + ": written by hwloc " + *version +
              ", and hwloc 2 reads it here; have it written for version 2: lstopo --of v2xml FILE");
}

}  // namespace

Result<GraphParts, std::string> read_topology_file(const std::string& path) {
  XmlLimits limits;
  limits.doctype = Doctype::kNameOnly;
  const std::string text = BL_TRY(read_whole_file(path, limits.bytes));
  const XmlElement root = BL_TRY(parse_xml(text, path, limits));
  if (root.name == "system") return read_nccl_system(root, path);
  if (root.name == "topology") {
    BL_TRY(check_hwloc_version(root, path));
    return read_hwloc_xml(text, path);
  }
  return fail(path + ":" + std::to_string(root.line) + ": <" + root.name +
              "> is neither NCCL's <system> nor hwloc's <topology>; NCCL_TOPO_DUMP_FILE makes the "
              "one, lstopo --of xml the other");
}

}  // namespace beeline::topology
