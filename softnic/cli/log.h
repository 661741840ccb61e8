// SPDX-License-Identifier: Apache-2.0
// `softnic log`: what happened to a fabric.
#pragma once

#include <string>

#include "softnic/fabric/fabric.h"

namespace softnic::cli {

// Writes the whole log so far to an open file. Returns an errno.
int copy_log(const Fabric& fabric, int to);

// With `follow`, goes on until the fabric ends.
int log(const std::string& name, bool follow);

}  // namespace softnic::cli
