// SPDX-License-Identifier: Apache-2.0
//
// What the driver says of the first GPU, as far as results depend on it: who reads a table from
// another machine has to know.
#pragma once

#include <string>

#include "tests/gpu/cuda_api.h"

namespace beeline::gpu {

// Two lines: how processes share the GPU, and what it promises to NICs.
std::string card(const Cuda& cuda);

}  // namespace beeline::gpu
