// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver, looked for at run time. All that is asked of it so far is whether it is there.
#pragma once

namespace beeline {

// Loads libcuda.so.1 and leaves it loaded: an application with a GPU has it anyway.
bool find_cuda_driver() noexcept;

}  // namespace beeline
