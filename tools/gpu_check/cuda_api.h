// SPDX-License-Identifier: Apache-2.0
//
// The functions of the CUDA driver that this program uses. libcuda.so.1 comes with the NVIDIA
// driver. They are declared here, so that no toolkit is needed to build this. nccl_facts.cc
// compares the declarations with cuda.h where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "include/cuda/driver_abi.h"
#include "tools/gpu_check/library.h"

namespace beeline::gpu {

inline constexpr int kCudaSuccess = 0;
inline constexpr int kCudaNotReady = 600;
inline constexpr unsigned kStreamNonBlocking = 1;  // no implicit order with the default stream

using DevicePointer = std::uint64_t;  // CUdeviceptr
using StreamHandle = void*;           // CUstream, which is also NCCL's cudaStream_t

// The driver's functions. Each returns a CUresult, where 0 is success.
struct CudaFunctions {
  int (*init)(unsigned flags);
  int (*driver_get_version)(int* version);
  int (*get_error_name)(int error, const char** name);
  int (*device_get_count)(int* count);
  int (*device_get)(int* device, int ordinal);
  int (*device_get_name)(char* name, int length, int device);
  int (*device_get_pci_bus_id)(char* id, int length, int device);
  int (*device_get_attribute)(int* value, int attribute, int device);
  int (*primary_context_retain)(void** context, int device);
  int (*context_set_current)(void* context);
  int (*context_synchronize)();
  int (*memory_allocate)(DevicePointer* address, std::size_t bytes);
  int (*memory_set)(DevicePointer address, unsigned char value, std::size_t bytes);
  int (*copy_to_device)(DevicePointer to, const void* from, std::size_t bytes);
  int (*copy_to_host)(void* to, DevicePointer from, std::size_t bytes);
  int (*stream_create)(StreamHandle* stream, unsigned flags);
  int (*stream_query)(StreamHandle stream);
};

// The first GPU, with its primary context current in the thread that opened it. Its memory and
// streams live until the process ends.
class Cuda {
 public:
  // The library names to try: only $BL_CUDA_LIB if that is set, or the usual name.
  static std::vector<std::string> places();
  // Fails if there is no driver or no GPU, and says which.
  static Outcome<Cuda> open();

  // "NVIDIA H200 (0000:18:00.0), CUDA 13.0, /lib/libcuda.so.1"
  Outcome<std::string> describe() const;

  // Returns nothing if the driver does not know the attribute.
  std::optional<int> attribute(cuda_abi::DeviceAttribute attribute) const;

  Outcome<DevicePointer> allocate(std::size_t bytes) const;
  // These three return when the operation is complete.
  Outcome<void> fill(DevicePointer address, unsigned char value, std::size_t bytes) const;
  Outcome<void> upload(DevicePointer to, const void* from, std::size_t bytes) const;
  Outcome<void> download(void* to, DevicePointer from, std::size_t bytes) const;

  Outcome<StreamHandle> make_stream() const;
  // Whether all queued work has completed.
  Outcome<bool> is_idle(StreamHandle stream) const;

 private:
  explicit Cuda(Library library) : library_(std::move(library)), call_() {}
  Outcome<void> find_functions();
  Outcome<void> use_first_device();
  Outcome<void> check(const char* what, int result) const;

  Library library_;
  CudaFunctions call_;
  int device_ = 0;
};

}  // namespace beeline::gpu
