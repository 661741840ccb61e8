// SPDX-License-Identifier: Apache-2.0
//
// Version 9, for NCCL 2.24 and later: all sizes are size_t, and NCCL may say that it does not need
// the completion of a receive.
#include "include/nccl/net_v9.h"
#include "plugin/abi/table.h"

extern "C" {

[[gnu::visibility("default")]] extern const ncclNet_v9_t ncclNetPlugin_v9;
constinit const ncclNet_v9_t ncclNetPlugin_v9 = beeline::abi::table<ncclNet_v9_t>();

}  // extern "C"
