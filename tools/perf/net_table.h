// SPDX-License-Identifier: Apache-2.0
//
// A plugin's function table, in the shape of the newest version whatever the plugin exports. An
// older table gets thin functions around it that do what NCCL's own compatibility layer does: drop
// what the version cannot hear of, convert the sizes.
#pragma once

#include <memory>
#include <string>

#include "include/nccl/net.h"
#include "tools/perf/call_watch.h"

namespace beeline::perf {

inline constexpr int kOldestAbi = 6;
inline constexpr int kNewestAbi = 12;

struct Net {
  ncclNet_v12_t calls{};
  int abi = 0;            // the version that the plugin really serves
  void* ctx = nullptr;    // from init; v11 on
  std::string file = {};  // where it was loaded from
  std::shared_ptr<CallWatches> watches = std::make_shared<CallWatches>();
};

// "ncclNetPlugin_v8"
std::string table_symbol(int abi);

// `table` is what dlsym found under table_symbol(abi), which must be a version we know. One table
// per version and process: the functions around it are static.
ncclNet_v12_t adapt_table(int abi, const void* table);

}  // namespace beeline::perf
