// SPDX-License-Identifier: Apache-2.0
#include "topology/read/live.h"

#include "topology/read/hwloc_reader.h"
#include "topology/read/sysfs.h"

namespace beeline::topology {

GraphParts read_live(const std::string& sysfs_root) {
  if (sysfs_root != "/sys") return read_sysfs(sysfs_root);
  auto parts = read_hwloc();
  if (parts) return *std::move(parts);
  GraphParts plain = read_sysfs(sysfs_root);
  plain.remarks.push_back("read without hwloc: " + parts.error().text);
  return plain;
}

}  // namespace beeline::topology
