// SPDX-License-Identifier: Apache-2.0
// `softnic log`: what happened to a fabric.
#pragma once

#include <string>

namespace softnic::cli {

// With `follow`, goes on until the fabric ends.
int log(const std::string& name, bool follow);

}  // namespace softnic::cli
