// SPDX-License-Identifier: Apache-2.0
// `softnic log`: prints the log of a fabric.
#pragma once

#include <string>

#include "softnic/fabric/fabric.h"

namespace softnic::cli {

// Copies the log to an open file. Returns an errno.
int copy_log(const Fabric& fabric, int to);

// With `follow`, continues until the fabric ends.
int log(const std::string& name, bool follow);

}  // namespace softnic::cli
