// SPDX-License-Identifier: Apache-2.0
#include "tests/beds/softgpu/process.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "common/base/fd.h"
#include "tests/support/catch.h"

namespace beeline::test {
namespace {

// Both ends of a pipe.
struct Line {
  Line() {
    int ends[2];
    BL_MUST(pipe(ends) == 0);
    from.reset(ends[0]);
    to.reset(ends[1]);
  }
  std::string rest() {
    to.reset();
    std::string text;
    char part[512];
    for (ssize_t got; (got = read(from.get(), part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(got));
    return text;
  }
  UniqueFd from;
  UniqueFd to;
};

void set_environment(const Environment& environment) {
  for (const char* name : {"SOFTGPU", "BEELINE_SYSFS_ROOT", "CUDA_VISIBLE_DEVICES"}) unsetenv(name);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
}

[[noreturn]] void be_child(const CudaBody& body, const Environment& environment, int complaints,
                           int diagnostics) {
  // Otherwise the test program would report the child's signal as its own.
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) signal(number, SIG_DFL);
  dup2(diagnostics, STDERR_FILENO);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::string complaint;
  try {
    set_environment(environment);
    Cuda cuda;
    body(cuda);
  } catch (const std::exception& error) {
    complaint = error.what();
  }
  const ssize_t written = write(complaints, complaint.data(), complaint.size());
  _exit(written == static_cast<ssize_t>(complaint.size()) ? 0 : 1);
}

}  // namespace

Cuda::Cuda() : library_(dlopen(SOFTGPU_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) throw MustError(dlerror());
#define SOFTGPU_FIND(name, ...) name = reinterpret_cast<decltype(name)>(dlsym(library_, #name));
  SOFTGPU_TYPES(SOFTGPU_FIND)
#undef SOFTGPU_FIND
}

Context* Cuda::start(int gpu) {
  Context* context = nullptr;
  CU_MUST(*this, kSuccess, cuInit(0));
  CU_MUST(*this, kSuccess, cuDevicePrimaryCtxRetain(&context, gpu));
  CU_MUST(*this, kSuccess, cuCtxSetCurrent(context));
  return context;
}

DevicePtr Cuda::allocate(std::size_t size) {
  DevicePtr address = 0;
  CU_MUST(*this, kSuccess, cuMemAlloc_v2(&address, size));
  return address;
}

int Cuda::handle(DevicePtr address, std::size_t size) {
  int fd = -1;
  CU_MUST(*this, kSuccess,
          cuMemGetHandleForAddressRange(&fd, address, size, softnic::gpu::kRangeHandleDmaBufFd, 0));
  return fd;
}

std::string Cuda::error_name(CuResult result) const {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) == CuResult::kSuccess) return name;
  return std::to_string(static_cast<int>(result));
}

void Cuda::set(const char* settings) {
  const char* const complaint = softgpu_set(settings);
  if (complaint != nullptr) throw MustError(complaint);
}

CudaEnding end_of_process(const CudaBody& body, const Environment& environment) {
  Line complaints;
  Line diagnostics;
  const pid_t child = fork();
  BL_MUST(child >= 0);
  if (child == 0) be_child(body, environment, complaints.to.get(), diagnostics.to.get());
  CudaEnding ending;
  ending.diagnostics = diagnostics.rest();
  ending.complaint = complaints.rest();
  int status = 0;
  BL_MUST(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  return ending;
}

void in_process(const CudaBody& body, const Environment& environment) {
  const CudaEnding ending = end_of_process(body, environment);
  INFO(ending.diagnostics);
  REQUIRE(ending.complaint == "");
  REQUIRE(ending.signal == 0);
}

}  // namespace beeline::test
