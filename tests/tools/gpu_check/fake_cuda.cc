// SPDX-License-Identifier: Apache-2.0
//
// A fake CUDA driver for the tests of nccl_ranks. GPU memory is the heap, and queued work has
// completed at once. FAKE_CUDA changes it:
//
//   no_device    there is no GPU
//   never_ready  queued work never completes
//   exclusive    only one process may use the GPU
//   old          newer attributes are unknown
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr int kSuccess = 0;
constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
constexpr int kNotReady = 600;

bool is_told(std::string_view wanted) {
  const char* const told = std::getenv("FAKE_CUDA");
  return told != nullptr && wanted == told;
}

int a_context;
int a_stream;

}  // namespace

// The names and types are the driver's.
extern "C" {

int cuInit(unsigned) { return is_told("no_device") ? kNoDevice : kSuccess; }

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}

int cuGetErrorName(int error, const char** name) {
  *name = error == kNoDevice ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN";
  return kSuccess;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}

int cuDeviceGet(int* device, int) {
  *device = 0;
  return kSuccess;
}

int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<size_t>(length), "Fake GPU");
  return kSuccess;
}

int cuDeviceGetPCIBusId(char* id, int length, int) {
  std::snprintf(id, static_cast<size_t>(length), "0000:00:00.0");
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kComputeMode = 20;
  constexpr int kMajor = 75;
  constexpr int kRdma = 116;
  constexpr int kFlushOptions = 117;
  constexpr int kOrdering = 118;
  constexpr int kInvalidValue = 1;
  if (is_told("old") && attribute > kRdma) return kInvalidValue;
  switch (attribute) {
    case kComputeMode: *value = is_told("exclusive") ? 3 : 0; return kSuccess;
    case kMajor: *value = 9; return kSuccess;
    case kFlushOptions: *value = 3; return kSuccess;
    case kOrdering: *value = 100; return kSuccess;
    default: *value = attribute >= kRdma ? 1 : 0; return kSuccess;
  }
}

int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &a_context;
  return kSuccess;
}

int cuCtxSetCurrent(void*) { return kSuccess; }
int cuCtxSynchronize() { return kSuccess; }

int cuMemAlloc_v2(std::uint64_t* address, size_t bytes) {
  void* const memory = std::malloc(bytes);
  *address = reinterpret_cast<std::uint64_t>(memory);
  return memory == nullptr ? kOutOfMemory : kSuccess;
}

int cuMemsetD8_v2(std::uint64_t address, unsigned char value, size_t bytes) {
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return kSuccess;
}

int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kSuccess;
}

int cuMemcpyDtoH_v2(void* to, std::uint64_t from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kSuccess;
}

int cuStreamCreate(void** stream, unsigned) {
  *stream = &a_stream;
  return kSuccess;
}

int cuStreamQuery(void*) { return is_told("never_ready") ? kNotReady : kSuccess; }

}  // extern "C"
