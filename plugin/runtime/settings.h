// SPDX-License-Identifier: Apache-2.0
//
// Checks settings that the table of parameters cannot check: folders, address ranges, timeouts.
#pragma once

#include <vector>

#include "common/base/finding.h"
#include "plugin/config/config.h"

namespace beeline {

// A warning for each setting that cannot be used: folder-unusable, address-range-not-understood.
// A warning for a timeout with which a dead path is noticed late: timeout-long.
// A note for more queue pairs than a connection can have: queue-pairs-cut. The default folders are
// not checked, because a container may have no /dev/shm.
std::vector<Finding> check_settings(const Config& config, const Environ& environ);

}  // namespace beeline
