// SPDX-License-Identifier: Apache-2.0
//
// The driver's facts about the first GPU on which results depend. They are printed with each table
// of results.
#pragma once

#include <string>

#include "tools/gpu_check/cuda_api.h"

namespace beeline::gpu {

// Two lines: how processes can share the GPU, and its GPUDirect attributes.
std::string card(const Cuda& cuda);

}  // namespace beeline::gpu
