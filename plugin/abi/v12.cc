// SPDX-License-Identifier: Apache-2.0
//
// Version 12, for NCCL 2.30 and later: rails, planes and larger virtual devices.
#include "include/nccl/net_v12.h"
#include "plugin/abi/table.h"

extern "C" {

[[gnu::visibility("default")]] extern const ncclNet_v12_t ncclNetPlugin_v12;
constinit const ncclNet_v12_t ncclNetPlugin_v12 = beeline::abi::table<ncclNet_v12_t>();

}  // extern "C"
