// SPDX-License-Identifier: Apache-2.0
// A driver can be initialized once in a process, so each test case runs in a child process, which
// loads the library.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tests/beds/softgpu/cuda_calls.h"
#include "tests/support/must.h"

namespace beeline::test {

using softnic::gpu::Context;
using softnic::gpu::CuResult;
using softnic::gpu::DevicePtr;

// The driver in a process, with BL_MUST for what must hold.
class Cuda : public softnic::gpu::Calls {
 public:
  Cuda();  // opens the library; nothing is initialized
  // cuInit, and a GPU's primary context made current.
  Context* start(int gpu = 0);
  DevicePtr allocate(std::size_t size);
  // A handle for an address range.
  int handle(DevicePtr address, std::size_t size);
  std::string error_name(CuResult result) const;
  void set(const char* settings);  // softgpu_set, which must succeed
  void* library() const { return library_; }

 private:
  void* library_;
};

using Environment = std::map<std::string, std::string>;
using CudaBody = std::function<void(Cuda&)>;

inline void* pointer(softnic::gpu::DevicePtr address) { return reinterpret_cast<void*>(address); }

struct CudaEnding {
  int signal = 0;           // the signal that ended it
  std::string complaint;    // of the BL_MUST that failed
  std::string diagnostics;  // what it wrote to stderr
};

// SOFTGPU and BEELINE_SYSFS_ROOT are set only if the given environment has them.
CudaEnding end_of_process(const CudaBody& body, const Environment& environment = {});
// Fails the test if the body does not finish.
void in_process(const CudaBody& body, const Environment& environment = {});

}  // namespace beeline::test

// Checks the result of a call, and prints its name if it is another one.
#define CU_MUST(cuda, wanted, ...)                                                   \
  do {                                                                               \
    const ::softnic::gpu::CuResult cu_result = (__VA_ARGS__);                        \
    if (cu_result != ::softnic::gpu::CuResult::wanted)                               \
      ::beeline::test::must_failed(#__VA_ARGS__, __FILE__, __LINE__,                 \
                                   (cuda).error_name(cu_result) + ", not " #wanted); \
  } while (false)
