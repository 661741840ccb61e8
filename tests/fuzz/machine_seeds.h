// SPDX-License-Identifier: Apache-2.0
//
// Seeds for the readers of machine descriptions.
#pragma once

#include "tests/fuzz/targets.h"

namespace beeline::fuzz {

// Files of this project's writer, and one by hand with everything that other writers use.
std::vector<Bytes> machine_seeds();

}  // namespace beeline::fuzz
