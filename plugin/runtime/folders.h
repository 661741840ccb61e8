// SPDX-License-Identifier: Apache-2.0
//
// Checks of the folders that the user has named.
#pragma once

#include <string>
#include <vector>

#include "plugin/config/config.h"

namespace beeline {

// Returns one sentence for each folder that cannot be used. The default folders are not checked,
// because a container may have no /dev/shm.
std::vector<std::string> folder_complaints(const Config& config);

}  // namespace beeline
