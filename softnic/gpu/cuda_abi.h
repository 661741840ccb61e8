// SPDX-License-Identifier: Apache-2.0
// The types of the CUDA driver interface, with softgpu's own types behind the handles.
#pragma once

#include "include/cuda/driver_abi.h"

namespace softnic::gpu {

using namespace cuda_abi;

struct Context;   // CUcontext points to one
struct Stream;    // CUstream
struct GpuEvent;  // CUevent

}  // namespace softnic::gpu
