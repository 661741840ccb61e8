// SPDX-License-Identifier: Apache-2.0
//
// Version 8, for NCCL 2.20 and later: a registration may be larger than an int. As in earlier
// versions, init is called once and there is no finalize.
#include "include/nccl/net_v8.h"
#include "plugin/abi/table.h"

extern "C" {

[[gnu::visibility("default")]] extern const ncclNet_v8_t ncclNetPlugin_v8;
constinit const ncclNet_v8_t ncclNetPlugin_v8 = beeline::abi::table<ncclNet_v8_t>();

}  // extern "C"
