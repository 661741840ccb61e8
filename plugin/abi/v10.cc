// SPDX-License-Identifier: Apache-2.0
//
// Version 10, for NCCL 2.26 and later: a traffic class for each connection, and handles for a
// profiler.
#include "include/nccl/net_v10.h"
#include "plugin/abi/table.h"

namespace {

consteval ncclNet_v10_t table_v10() {
  ncclNet_v10_t table = beeline::abi::table<ncclNet_v10_t>();
  table.init = beeline::abi::init_v10;
  return table;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] extern const ncclNet_v10_t ncclNetPlugin_v10;
constinit const ncclNet_v10_t ncclNetPlugin_v10 = table_v10();

}  // extern "C"
