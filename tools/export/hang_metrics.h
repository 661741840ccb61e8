// SPDX-License-Identifier: Apache-2.0
//
// Writes which process of a job the others wait for, or have lost.
#pragma once

#include "tools/export/exposition.h"
#include "tools/export/metrics.h"

namespace beeline::exporter {

void add_hang_causes(Exposition& out, const State& state);

}  // namespace beeline::exporter
