// SPDX-License-Identifier: Apache-2.0
// The driver's edge as softgpu sees it: what a handle points to is its own.
#pragma once

#include "include/cuda/driver_abi.h"

namespace softnic::gpu {

using namespace cuda_abi;

struct Context;   // CUcontext points to one
struct Stream;    // CUstream
struct GpuEvent;  // CUevent

}  // namespace softnic::gpu
