// SPDX-License-Identifier: Apache-2.0
//
// Writes the states, the waits and the paths of the connections that are open.
#pragma once

#include "tools/export/exposition.h"
#include "tools/export/metrics.h"

namespace beeline::exporter {

void add_open_connections(Exposition& out, const State& state);

}  // namespace beeline::exporter
