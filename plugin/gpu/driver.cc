// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver, looked for at run time.
#include "plugin/gpu/driver.h"

#include <dlfcn.h>

namespace beeline {

bool find_cuda_driver() noexcept {
  return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr;
}

}  // namespace beeline
