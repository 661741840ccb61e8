// SPDX-License-Identifier: Apache-2.0
//
// The NCCL calls of each operation. All-to-all consists of sends and receives in one group, since
// older NCCL has no function for it. Send/recv passes a block on to the next rank.
#pragma once

#include "tools/gpu_check/cases.h"
#include "tools/gpu_check/cuda_api.h"
#include "tools/gpu_check/nccl_api.h"

namespace beeline::gpu {

struct Work {
  NcclComm comm;
  int rank;
  int ranks;
  DevicePointer input;
  DevicePointer output;
  StreamHandle stream;
};

// Queues the operation, which is complete when the stream is idle.
Outcome<void> queue(const Nccl& nccl, const Case& one, const Work& work);

}  // namespace beeline::gpu
