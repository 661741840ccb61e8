// SPDX-License-Identifier: Apache-2.0
//
// Recordings as a trace in the JSON format of Chrome, which Perfetto and chrome://tracing open: a
// row for each connection, with what it moved and what it waited for.
#pragma once

#include <string>

#include "tools/replay/text.h"

namespace beeline::replay {

std::string trace_of(const Story& story);

}  // namespace beeline::replay
