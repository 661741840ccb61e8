// SPDX-License-Identifier: Apache-2.0
//
// Reads the machine on which this process runs.
#pragma once

#include <string>

#include "topology/graph.h"

namespace beeline::topology {

// Uses hwloc if it is installed; otherwise sysfs alone, and a remark says so. A root other than
// /sys is read without hwloc, which could be directed there only through the environment.
GraphParts read_live(const std::string& sysfs_root);

}  // namespace beeline::topology
