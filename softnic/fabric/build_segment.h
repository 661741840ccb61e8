// SPDX-License-Identifier: Apache-2.0
// Fills the records of a new segment from a complete spec.
#pragma once

#include "softnic/fabric/layout.h"
#include "softnic/spec/fabric_spec.h"

namespace softnic {

void build_segment(const FabricSpec& spec, FabricHeader& header);

}  // namespace softnic
