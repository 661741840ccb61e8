// SPDX-License-Identifier: Apache-2.0
//
// What connections have counted, also those that are closed.
#pragma once

#include "tools/export/exposition.h"
#include "tools/export/metrics.h"

namespace beeline::exporter {

void add_totals(Exposition& out, const State& state);

}  // namespace beeline::exporter
