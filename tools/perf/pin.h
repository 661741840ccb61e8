// SPDX-License-Identifier: Apache-2.0
//
// Pins each rank to a processor. If two ranks poll on one processor, the scheduler switches between
// them every few milliseconds, which hides everything else.
#pragma once

#include "tools/cli/exit_status.h"

namespace beeline::perf {

// Pins this process, with all threads that it will start, to one of the processors that it may use.
// If there are more ranks than processors, they share.
Outcome<bool> pin_rank(int rank);

}  // namespace beeline::perf
