// SPDX-License-Identifier: Apache-2.0
//
// Version 7, for NCCL 2.19 and later: device handles that transports on the GPU would need.
#include "include/nccl/net_v7.h"
#include "plugin/abi/table.h"

extern "C" {

[[gnu::visibility("default")]] extern const ncclNet_v7_t ncclNetPlugin_v7;
constinit const ncclNet_v7_t ncclNetPlugin_v7 = beeline::abi::table<ncclNet_v7_t>();

}  // extern "C"
