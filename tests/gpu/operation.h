// SPDX-License-Identifier: Apache-2.0
//
// How each operation is asked of NCCL. All-to-all is made of sends and receives in one group, since
// NCCL got a function of its own for it only lately; send/recv passes a block on to the next rank.
#pragma once

#include "tests/gpu/cases.h"
#include "tests/gpu/cuda_api.h"
#include "tests/gpu/nccl_api.h"

namespace beeline::gpu {

struct Work {
  NcclComm comm;
  int rank;
  int ranks;
  DevicePointer input;
  DevicePointer output;
  StreamHandle stream;
};

// Queues it; it has run when the stream is idle.
Outcome<Done> queue(const Nccl& nccl, const Case& one, const Work& work);

}  // namespace beeline::gpu
