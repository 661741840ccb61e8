// SPDX-License-Identifier: Apache-2.0
#include "common/gpu/cuda.h"

#include <dlfcn.h>

#include <type_traits>

namespace beeline::gpu {
namespace {

enum class Need { kRequired, kOptional };

// Returns the first required symbol that is missing, or null.
const char* fill(Cuda& cuda, void* library) {
  const char* missing = nullptr;
  const auto take = [&](auto& member, const char* symbol, Need need) {
    void* const found = ::dlsym(library, symbol);
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(found);
    if (found == nullptr && need == Need::kRequired && missing == nullptr) missing = symbol;
  };
#define BL_CUDA_TAKE(member, symbol, type, need) take(cuda.member, #symbol, Need::need);
  BL_CUDA_FUNCTIONS(BL_CUDA_TAKE)
#undef BL_CUDA_TAKE
  return missing;
}

Failure<NoCuda> broken(const Cuda& cuda, const std::string& why) {
  return fail(NoCuda{.absent = false, .why = cuda.library + ": " + why});
}

}  // namespace

Outcome<void> Cuda::check(const char* call, CuResult result) const {
  if (result == CuResult::kSuccess) return {};
  const char* name = nullptr;
  const bool known = get_error_name(result, &name) == CuResult::kSuccess && name != nullptr;
  return fail(std::string(call) + ": " +
              (known ? name : "CUDA error " + std::to_string(static_cast<int>(result))));
}

Result<Cuda, NoCuda> load_cuda(const std::string& path) {
  Cuda cuda;
  cuda.library = path.empty() ? "libcuda.so.1" : path;
  void* const library = ::dlopen(cuda.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    if (!path.empty()) return broken(cuda, why != nullptr ? why : "cannot be loaded");
    return fail(NoCuda{.absent = true, .why = "no CUDA driver (libcuda.so.1)"});
  }
  if (const char* const missing = fill(cuda, library)) {
    return broken(cuda, std::string("has no ") + missing + ": update NVIDIA's driver");
  }
  if (const CuResult ready = cuda.init(0); ready == CuResult::kNoDevice) {
    return fail(NoCuda{.absent = true, .why = "the CUDA driver sees no GPU here"});
  } else if (auto status = cuda.check("cuInit", ready); !status) {
    return broken(cuda, status.error().text);
  }
  if (auto asked = cuda.check("cuDriverGetVersion", cuda.driver_get_version(&cuda.version));
      !asked) {
    return broken(cuda, asked.error().text);
  }
  if (auto asked = cuda.check("cuDeviceGetCount", cuda.device_get_count(&cuda.gpus)); !asked) {
    return broken(cuda, asked.error().text);
  }
  if (cuda.gpus == 0) {
    return fail(NoCuda{.absent = true, .why = "the CUDA driver sees no GPU here"});
  }
  return cuda;
}

}  // namespace beeline::gpu
