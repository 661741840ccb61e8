// SPDX-License-Identifier: Apache-2.0
// Contexts and the context stack of each thread; streams and events.
#include <atomic>
#include <thread>

#include "tests/beds/softgpu/process.h"
#include "tests/support/catch.h"

namespace {

using namespace beeline::test;
using softnic::gpu::GpuEvent;
using softnic::gpu::Ordinal;
using softnic::gpu::Stream;

const Environment kTwoGpus{{"SOFTGPU", "gpus=2"}};

Context* current(Cuda& cuda) {
  Context* context = nullptr;
  CU_MUST(cuda, kSuccess, cuda.cuCtxGetCurrent(&context));
  return context;
}

TEST_CASE("context: a GPU has one primary context, counted", "[context]") {
  in_process(
      [](Cuda& cuda) {
        CU_MUST(cuda, kSuccess, cuda.cuInit(0));
        Context* first = nullptr;
        Context* again = nullptr;
        Context* other = nullptr;
        unsigned flags = 9;
        int active = 9;
        CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxGetState(0, &flags, &active));
        BL_MUST(flags == 0 && active == 0);
        CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxRetain(&first, 0));
        CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxRetain(&again, 0));
        CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxRetain(&other, 1));
        BL_MUST(first == again && first != other && first != nullptr);
        BL_MUST(current(cuda) == nullptr);
        CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxRelease_v2(0));
        CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxGetState(0, &flags, &active));
        BL_MUST(active == 1);
        CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxRelease_v2(0));
        CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxGetState(0, &flags, &active));
        BL_MUST(active == 0);
        CU_MUST(cuda, kInvalidContext, cuda.cuDevicePrimaryCtxRelease_v2(0));
        CU_MUST(cuda, kInvalidDevice, cuda.cuDevicePrimaryCtxRetain(&first, 2));
        CU_MUST(cuda, kInvalidDevice, cuda.cuDevicePrimaryCtxRelease_v2(-1));
        CU_MUST(cuda, kInvalidValue, cuda.cuDevicePrimaryCtxRetain(nullptr, 0));
      },
      kTwoGpus);
}

TEST_CASE("context: flags of a primary context are kept, unknown ones refused", "[context]") {
  in_process([](Cuda& cuda) {
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    unsigned flags = 0;
    int active = 0;
    CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxSetFlags_v2(0, 4));
    CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxGetState(0, &flags, &active));
    BL_MUST(flags == 4 && active == 0);
    CU_MUST(cuda, kInvalidValue, cuda.cuDevicePrimaryCtxSetFlags_v2(0, 0x1000));
  });
}

TEST_CASE("context: releasing a context frees its memory", "[context]") {
  in_process([](Cuda& cuda) {
    Context* const context = cuda.start();
    const DevicePtr address = cuda.allocate(4096);
    CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxRelease_v2(0));
    DevicePtr another = 0;
    CU_MUST(cuda, kContextIsDestroyed, cuda.cuMemAlloc_v2(&another, 4096));
    CU_MUST(cuda, kNotFound, cuda.cuMemGetAddressRange_v2(&another, nullptr, address));
    CU_MUST(cuda, kContextIsDestroyed, cuda.cuCtxSetCurrent(context));
    BL_MUST(cuda.start() == context);
    CU_MUST(cuda, kInvalidValue, cuda.cuMemFree_v2(address));
    const DevicePtr kept = cuda.allocate(4096);
    CU_MUST(cuda, kSuccess, cuda.cuDevicePrimaryCtxReset_v2(0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemFree_v2(kept));
    cuda.allocate(4096);
  });
}

TEST_CASE("context: the stack of a thread has the current context on top", "[context]") {
  in_process(
      [](Cuda& cuda) {
        Context* const primary = cuda.start();
        Context* made = nullptr;
        Context* popped = nullptr;
        Ordinal gpu = -1;
        CU_MUST(cuda, kSuccess, cuda.cuCtxCreate_v2(&made, 0, 1));
        BL_MUST(current(cuda) == made && made != primary);
        CU_MUST(cuda, kSuccess, cuda.cuCtxGetDevice(&gpu));
        BL_MUST(gpu == 1);
        CU_MUST(cuda, kSuccess, cuda.cuCtxPushCurrent_v2(primary));
        CU_MUST(cuda, kSuccess, cuda.cuCtxGetDevice(&gpu));
        BL_MUST(gpu == 0);
        CU_MUST(cuda, kSuccess, cuda.cuCtxPopCurrent_v2(&popped));
        BL_MUST(popped == primary && current(cuda) == made);
        CU_MUST(cuda, kSuccess, cuda.cuCtxSetCurrent(primary));
        CU_MUST(cuda, kSuccess, cuda.cuCtxPopCurrent_v2(nullptr));
        BL_MUST(current(cuda) == primary);
        CU_MUST(cuda, kSuccess, cuda.cuCtxSetCurrent(nullptr));
        BL_MUST(current(cuda) == nullptr);
        CU_MUST(cuda, kInvalidContext, cuda.cuCtxPopCurrent_v2(&popped));
        CU_MUST(cuda, kInvalidContext, cuda.cuCtxGetDevice(&gpu));
        CU_MUST(cuda, kSuccess, cuda.cuCtxGetDevice_v2(&gpu, made));
        BL_MUST(gpu == 1);
        CU_MUST(cuda, kInvalidContext, cuda.cuCtxSynchronize());
        CU_MUST(cuda, kSuccess, cuda.cuCtxSynchronize_v2(made));
      },
      kTwoGpus);
}

TEST_CASE("context: a destroyed or unknown context is refused", "[context]") {
  in_process([](Cuda& cuda) {
    Context* const primary = cuda.start();
    Context* made = nullptr;
    CU_MUST(cuda, kSuccess, cuda.cuCtxCreate_v4(&made, nullptr, 0, 0));
    const DevicePtr address = cuda.allocate(4096);
    CU_MUST(cuda, kSuccess, cuda.cuCtxDestroy_v2(made));
    BL_MUST(current(cuda) == primary);
    CU_MUST(cuda, kInvalidContext, cuda.cuCtxDestroy_v2(made));
    CU_MUST(cuda, kContextIsDestroyed, cuda.cuCtxPushCurrent_v2(made));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemFree_v2(address));
    CU_MUST(cuda, kInvalidContext, cuda.cuCtxDestroy_v2(primary));
    int elsewhere = 0;
    auto* const foreign = reinterpret_cast<Context*>(&elsewhere);
    CU_MUST(cuda, kInvalidContext, cuda.cuCtxSetCurrent(foreign));
    CU_MUST(cuda, kInvalidContext, cuda.cuCtxPushCurrent_v2(foreign));
    CU_MUST(cuda, kInvalidContext, cuda.cuCtxDestroy_v2(nullptr));
    CU_MUST(cuda, kInvalidValue, cuda.cuCtxCreate_v2(&made, 0x1000, 0));
    CU_MUST(cuda, kInvalidDevice, cuda.cuCtxCreate_v3(&made, nullptr, 0, 0, 4));
  });
}

TEST_CASE("context: each thread has a stack of its own", "[context]") {
  in_process([](Cuda& cuda) {
    Context* const context = cuda.start();
    std::string complaint;
    std::thread([&] {
      try {
        BL_MUST(current(cuda) == nullptr);
        DevicePtr address = 0;
        CU_MUST(cuda, kInvalidContext, cuda.cuMemAlloc_v2(&address, 4096));
        CU_MUST(cuda, kSuccess, cuda.cuCtxSetCurrent(context));
        cuda.allocate(4096);
      } catch (const std::exception& error) {
        complaint = error.what();
      }
    }).join();
    if (!complaint.empty()) throw MustError(complaint);
  });
}

TEST_CASE("stream: queued work is done", "[stream]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    Stream* stream = nullptr;
    CU_MUST(cuda, kSuccess, cuda.cuStreamCreate(&stream, 1));
    const DevicePtr address = cuda.allocate(4096);
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD8Async(address, 0x5a, 4096, stream));
    char byte = 0;
    BL_MUST(cuda.softgpu_read(reinterpret_cast<void*>(address + 4095), &byte, 1) == 0);
    BL_MUST(byte == 0x5a);
    CU_MUST(cuda, kSuccess, cuda.cuStreamQuery(stream));
    CU_MUST(cuda, kSuccess, cuda.cuStreamSynchronize(stream));
    CU_MUST(cuda, kSuccess, cuda.cuStreamSynchronize(nullptr));
    CU_MUST(cuda, kSuccess, cuda.cuStreamDestroy_v2(stream));
    CU_MUST(cuda, kInvalidHandle, cuda.cuStreamQuery(stream));
    CU_MUST(cuda, kInvalidHandle, cuda.cuStreamDestroy_v2(stream));
    CU_MUST(cuda, kInvalidHandle, cuda.cuMemsetD8Async(address, 0, 1, stream));
    CU_MUST(cuda, kInvalidHandle, cuda.cuMemcpyDtoDAsync_v2(address, address, 1, stream));
    CU_MUST(cuda, kInvalidValue, cuda.cuStreamCreate(&stream, 2));
    CU_MUST(cuda, kInvalidHandle, cuda.cuStreamDestroy_v2(nullptr));
  });
}

TEST_CASE("stream: in a shared queue, work waits for all earlier work", "[stream]") {
  in_process(
      [](Cuda& cuda) {
        cuda.start();
        const DevicePtr address = cuda.allocate(16);
        const auto stream_of = [&](int priority) {
          Stream* stream = nullptr;
          CU_MUST(cuda, kSuccess, cuda.cuStreamCreateWithPriority(&stream, 1, priority));
          return stream;
        };
        const auto is_set = [&] {
          unsigned char byte = 0;
          BL_MUST_OK(cuda.softgpu_read(pointer(address), &byte, 1));
          return byte == 7;
        };
        Stream* const first = stream_of(0);
        Stream* const second = stream_of(0);
        Stream* const third = stream_of(0);  // shares with the first
        Stream* const urgent = stream_of(-100);
        std::atomic<bool> may_end{false};
        const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
        GpuEvent* event = nullptr;
        CU_MUST(cuda, kSuccess, cuda.cuEventCreate(&event, 2));
        CU_MUST(cuda, kSuccess, cuda.cuLaunchHostFunc(first, wait, &may_end));
        CU_MUST(cuda, kSuccess, cuda.cuEventRecord(event, first));
        CU_MUST(cuda, kSuccess, cuda.cuMemsetD8Async(address, 7, 1, third));
        CU_MUST(cuda, kSuccess, cuda.cuStreamWaitEvent(urgent, event, 0));
        CU_MUST(cuda, kSuccess, cuda.cuStreamSynchronize(second));
        CU_MUST(cuda, kNotReady, cuda.cuStreamQuery(first));
        CU_MUST(cuda, kNotReady, cuda.cuStreamQuery(third));
        CU_MUST(cuda, kNotReady, cuda.cuStreamQuery(urgent));
        CU_MUST(cuda, kNotReady, cuda.cuEventQuery(event));
        BL_MUST(!is_set());
        may_end = true;
        may_end.notify_all();
        CU_MUST(cuda, kSuccess, cuda.cuEventSynchronize(event));
        CU_MUST(cuda, kSuccess, cuda.cuStreamSynchronize(third));
        BL_MUST(is_set());
        CU_MUST(cuda, kSuccess, cuda.cuCtxSynchronize());
        CU_MUST(cuda, kSuccess, cuda.cuStreamQuery(urgent));
        CU_MUST(cuda, kSuccess, cuda.cuEventQuery(event));
      },
      {{"SOFTGPU", "queues=2"}});
}

TEST_CASE("stream: events tell the time between them", "[stream]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    GpuEvent* first = nullptr;
    GpuEvent* second = nullptr;
    GpuEvent* blind = nullptr;
    float milliseconds = -1;
    CU_MUST(cuda, kSuccess, cuda.cuEventCreate(&first, 0));
    CU_MUST(cuda, kSuccess, cuda.cuEventCreate(&second, 0));
    CU_MUST(cuda, kSuccess, cuda.cuEventCreate(&blind, 2));
    CU_MUST(cuda, kInvalidHandle, cuda.cuEventElapsedTime_v2(&milliseconds, first, second));
    for (GpuEvent* const event : {first, second, blind}) {
      CU_MUST(cuda, kSuccess, cuda.cuEventRecord(event, nullptr));
      CU_MUST(cuda, kSuccess, cuda.cuEventQuery(event));
      CU_MUST(cuda, kSuccess, cuda.cuEventSynchronize(event));
    }
    CU_MUST(cuda, kSuccess, cuda.cuStreamWaitEvent(nullptr, first, 0));
    CU_MUST(cuda, kSuccess, cuda.cuEventElapsedTime(&milliseconds, first, second));
    BL_MUST(milliseconds >= 0);
    CU_MUST(cuda, kInvalidHandle, cuda.cuEventElapsedTime(&milliseconds, first, blind));
    CU_MUST(cuda, kSuccess, cuda.cuEventDestroy_v2(first));
    CU_MUST(cuda, kInvalidHandle, cuda.cuEventQuery(first));
    CU_MUST(cuda, kInvalidHandle, cuda.cuEventElapsedTime(&milliseconds, first, second));
    CU_MUST(cuda, kInvalidValue, cuda.cuEventCreate(&first, 0x40));
  });
}

}  // namespace
