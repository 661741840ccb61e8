// SPDX-License-Identifier: Apache-2.0
//
// Folders that a person has named.
#pragma once

#include <string>
#include <vector>

#include "plugin/config/config.h"

namespace beeline {

// One sentence for each that is of no use as it is. The defaults are not a person's mistake: a
// container may have no /dev/shm.
std::vector<std::string> folder_complaints(const Config& config);

}  // namespace beeline
