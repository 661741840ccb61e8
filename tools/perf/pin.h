// SPDX-License-Identifier: Apache-2.0
//
// A processor for each rank. Two ranks that poll on one processor take turns by the scheduler's
// clock, in milliseconds, and nothing else can be measured then.
#pragma once

#include "tools/cli/exit_status.h"

namespace beeline::perf {

// Keeps this process, with all threads that it will start, on one of the processors that it may
// use; ranks that outnumber them share.
Outcome<bool> pin_rank(int rank);

}  // namespace beeline::perf
