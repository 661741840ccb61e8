// SPDX-License-Identifier: Apache-2.0
//
// Files to begin with.
#pragma once

#include "tests/fuzz/targets.h"

namespace beeline::fuzz {

// Of our own writer, and one by hand with all that others write.
std::vector<Bytes> machine_seeds();

}  // namespace beeline::fuzz
