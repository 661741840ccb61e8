// SPDX-License-Identifier: Apache-2.0
//
// Version 11, for NCCL 2.28 and later: init and finalize for each communicator.
#include "include/nccl/net_v11.h"
#include "plugin/abi/table.h"

namespace {

consteval ncclNet_v11_t table_v11() {
  ncclNet_v11_t table = beeline::abi::table<ncclNet_v11_t>();
  table.init = beeline::abi::init_v11;
  return table;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] extern const ncclNet_v11_t ncclNetPlugin_v11;
constinit const ncclNet_v11_t ncclNetPlugin_v11 = table_v11();

}  // extern "C"
