// SPDX-License-Identifier: Apache-2.0
//
// Writes the totals of the counters of connections, also of those that are closed.
#pragma once

#include "tools/export/exposition.h"
#include "tools/export/metrics.h"

namespace beeline::exporter {

void add_totals(Exposition& out, const State& state);

}  // namespace beeline::exporter
