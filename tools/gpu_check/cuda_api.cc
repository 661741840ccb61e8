// SPDX-License-Identifier: Apache-2.0
//
// The toolkit's header maps some function names to names with _v2, which are used here.
#include "tools/gpu_check/cuda_api.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace beeline::gpu {
std::vector<std::string> Cuda::places() {
  if (const char* const given = std::getenv("BL_CUDA_LIB"); given != nullptr) return {given};
  return {"libcuda.so.1"};
}

Outcome<Cuda> Cuda::open() {
  Outcome<Library> library = Library::open(places());
  if (!library) {
    return fail(fmt::format("no NVIDIA driver (libcuda.so.1); {}", library.error().text));
  }
  Cuda cuda(std::move(library).value());
  BL_TRY(cuda.find_functions());
  BL_TRY(cuda.use_first_device());
  return cuda;
}

Outcome<void> Cuda::find_functions() {
  BL_TRY(library_.find("cuInit", &call_.init));
  BL_TRY(library_.find("cuDriverGetVersion", &call_.driver_get_version));
  BL_TRY(library_.find("cuGetErrorName", &call_.get_error_name));
  BL_TRY(library_.find("cuDeviceGetCount", &call_.device_get_count));
  BL_TRY(library_.find("cuDeviceGet", &call_.device_get));
  BL_TRY(library_.find("cuDeviceGetName", &call_.device_get_name));
  BL_TRY(library_.find("cuDeviceGetPCIBusId", &call_.device_get_pci_bus_id));
  BL_TRY(library_.find("cuDeviceGetAttribute", &call_.device_get_attribute));
  BL_TRY(library_.find("cuDevicePrimaryCtxRetain", &call_.primary_context_retain));
  BL_TRY(library_.find("cuCtxSetCurrent", &call_.context_set_current));
  BL_TRY(library_.find("cuCtxSynchronize", &call_.context_synchronize));
  BL_TRY(library_.find("cuMemAlloc_v2", &call_.memory_allocate));
  BL_TRY(library_.find("cuMemsetD8_v2", &call_.memory_set));
  BL_TRY(library_.find("cuMemcpyHtoD_v2", &call_.copy_to_device));
  BL_TRY(library_.find("cuMemcpyDtoH_v2", &call_.copy_to_host));
  BL_TRY(library_.find("cuStreamCreate", &call_.stream_create));
  BL_TRY(library_.find("cuStreamQuery", &call_.stream_query));
  return {};
}

Outcome<void> Cuda::use_first_device() {
  const Outcome<void> started = check("cuInit", call_.init(0));
  if (!started) return fail(fmt::format("no usable GPU: {}", started.error().text));
  int count = 0;
  BL_TRY(check("cuDeviceGetCount", call_.device_get_count(&count)));
  if (count == 0) return fail(fmt::format("no GPU: {} counts 0 of them", library_.path()));
  BL_TRY(check("cuDeviceGet", call_.device_get(&device_, 0)));
  void* context = nullptr;
  BL_TRY(check("cuDevicePrimaryCtxRetain", call_.primary_context_retain(&context, device_)));
  return check("cuCtxSetCurrent", call_.context_set_current(context));
}

Outcome<std::string> Cuda::describe() const {
  std::array<char, 128> name{};
  std::array<char, 32> bus{};
  int version = 0;
  BL_TRY(check("cuDeviceGetName", call_.device_get_name(name.data(), name.size() - 1, device_)));
  BL_TRY(check("cuDeviceGetPCIBusId",
               call_.device_get_pci_bus_id(bus.data(), bus.size() - 1, device_)));
  BL_TRY(check("cuDriverGetVersion", call_.driver_get_version(&version)));
  return fmt::format("{} ({}), CUDA {}.{}, {}", name.data(), bus.data(), version / 1000,
                     version % 1000 / 10, library_.path());
}

std::optional<int> Cuda::attribute(cuda_abi::DeviceAttribute attribute) const {
  int value = 0;
  const int result = call_.device_get_attribute(&value, static_cast<int>(attribute), device_);
  return result == kCudaSuccess ? std::optional(value) : std::nullopt;
}

Outcome<DevicePointer> Cuda::allocate(std::size_t bytes) const {
  DevicePointer address = 0;
  BL_TRY(check("cuMemAlloc", call_.memory_allocate(&address, bytes)));
  return address;
}

// A copy from pageable memory, or a fill, may return before it has reached the GPU.
Outcome<void> Cuda::fill(DevicePointer address, unsigned char value, std::size_t bytes) const {
  BL_TRY(check("cuMemsetD8", call_.memory_set(address, value, bytes)));
  return check("cuCtxSynchronize", call_.context_synchronize());
}

Outcome<void> Cuda::upload(DevicePointer to, const void* from, std::size_t bytes) const {
  BL_TRY(check("cuMemcpyHtoD", call_.copy_to_device(to, from, bytes)));
  return check("cuCtxSynchronize", call_.context_synchronize());
}

Outcome<void> Cuda::download(void* to, DevicePointer from, std::size_t bytes) const {
  return check("cuMemcpyDtoH", call_.copy_to_host(to, from, bytes));
}

Outcome<StreamHandle> Cuda::make_stream() const {
  StreamHandle stream = nullptr;
  BL_TRY(check("cuStreamCreate", call_.stream_create(&stream, kStreamNonBlocking)));
  return stream;
}

Outcome<bool> Cuda::is_idle(StreamHandle stream) const {
  const int result = call_.stream_query(stream);
  if (result == kCudaNotReady) return false;
  BL_TRY(check("cuStreamQuery", result));
  return true;
}

Outcome<void> Cuda::check(const char* what, int result) const {
  if (result == kCudaSuccess) return {};
  const char* name = nullptr;
  if (call_.get_error_name(result, &name) != kCudaSuccess || name == nullptr) name = "unknown";
  return fail(fmt::format("{} returned {} ({})", what, result, name));
}

}  // namespace beeline::gpu
