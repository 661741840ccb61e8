// SPDX-License-Identifier: Apache-2.0
//
// Connects a rank to rank 0, whose side is admission.h, of `beeline perf` and of `beeline doctor`.
#pragma once

#include <string>

#include "tools/ranks/hello.h"
#include "tools/ranks/line_stream.h"

namespace beeline::ranks {

// `command` is that of all ranks. Returns when all ranks have connected. Rank 0 has to prove that
// it knows the token before this rank tells anything of itself, and nothing else that it sends is
// read before.
Outcome<LineStream> join(const std::string& command, const std::string& rendezvous,
                         const Hello& hello, int timeout_seconds);

}  // namespace beeline::ranks
