// SPDX-License-Identifier: Apache-2.0
//
// Asks NCCL's RAS, which each process of a job serves on its host, what ranks have called.
#pragma once

#include <string>

#include "common/base/problem.h"

namespace beeline::hang {

// NCCL_RAS_ADDR, or where NCCL listens without it.
std::string ras_address();

// Its answer to "verbose status": JSON, after some lines. Any process of this host may listen
// there, so the answer may be anything. Takes as long as NCCL collects: up to ten seconds.
Outcome<std::string> ask_ras(const std::string& address);

}  // namespace beeline::hang
