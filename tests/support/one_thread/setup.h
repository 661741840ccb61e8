// SPDX-License-Identifier: Apache-2.0
//
// Loads the shipped plugin over nullverbs, with both ends of every connection in this process. Used
// by the programs that measure one thread. A call that fails throws MustError.
#pragma once

#include <string>

#include "tests/support/nullverbs/report.h"
#include "tools/nccl/loader.h"

namespace beeline::bench {

// Loads the plugin and makes it find `verbs`; all its parameters keep their defaults. Warnings of
// the plugin go to stderr.
nccl::Net load(const std::string& plugin, const std::string& verbs, int abi);

// The report of the library that load() named.
const NullverbsReport& report_of(const std::string& verbs);

struct CommPair {
  void* send = nullptr;
  void* recv = nullptr;
};
CommPair connect(nccl::Net& net);
void close(nccl::Net& net, const CommPair& pair);

}  // namespace beeline::bench

// The call must succeed.
#define BL_BENCH_CALL(expr) BL_MUST_OK(static_cast<int>(expr))
