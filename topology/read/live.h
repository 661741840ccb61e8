// SPDX-License-Identifier: Apache-2.0
//
// Reads the machine that this process is on, by whatever is there.
#pragma once

#include <string>

#include "topology/graph.h"

namespace beeline::topology {

// Through hwloc, and without it by sysfs alone, with a remark. A root other than /sys is a machine
// that hwloc cannot be shown without changing the environment: by sysfs.
GraphParts read_live(const std::string& sysfs_root);

}  // namespace beeline::topology
