// SPDX-License-Identifier: Apache-2.0
// From a complete spec to the records of a fresh segment.
#pragma once

#include "softnic/fabric/layout.h"
#include "softnic/spec/fabric_spec.h"

namespace softnic {

void build_segment(const FabricSpec& spec, FabricHeader& header);

}  // namespace softnic
