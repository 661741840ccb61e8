// SPDX-License-Identifier: Apache-2.0
//
// Version 6, for NCCL 2.13 and later. All sizes are ints, and there are no virtual devices.
#include "include/nccl/net_v6.h"
#include "plugin/abi/table.h"

extern "C" {

[[gnu::visibility("default")]] extern const ncclNet_v6_t ncclNetPlugin_v6;
constinit const ncclNet_v6_t ncclNetPlugin_v6 = beeline::abi::table<ncclNet_v6_t>();

}  // extern "C"
