// SPDX-License-Identifier: Apache-2.0
// SOFTGPU: injected faults, messages for mistakes, and old driver versions.
#include <dlfcn.h>

#include "tests/beds/softgpu/process.h"
#include "tests/support/catch.h"

namespace {

using namespace beeline::test;
using softnic::gpu::kProcFound;
using softnic::gpu::kProcNotFound;
using softnic::gpu::kProcPerThreadStream;
using softnic::gpu::kProcVersionNotSufficient;

struct Found {
  void* function = nullptr;
  int status = -1;
};

Found look_up(Cuda& cuda, const char* name, int version, unsigned long long flags = 0) {
  Found found{&found, -1};
  CU_MUST(cuda, kSuccess,
          cuda.cuGetProcAddress_v2(name, &found.function, version, flags, &found.status));
  return found;
}

TEST_CASE("settings: the N-th call fails, the others do not", "[settings]") {
  in_process(
      [](Cuda& cuda) {
        cuda.start();
        DevicePtr address = 0;
        CU_MUST(cuda, kSuccess, cuda.cuMemAlloc_v2(&address, 10));
        CU_MUST(cuda, kOutOfMemory, cuda.cuMemAlloc_v2(&address, 10));
        CU_MUST(cuda, kSuccess, cuda.cuMemAlloc_v2(&address, 10));
        CU_MUST(cuda, kNotPermitted, cuda.cuMemAlloc_v2(&address, 10));
        CU_MUST(cuda, kSuccess, cuda.cuMemAlloc_v2(&address, 10));
        BL_MUST(cuda.softgpu_calls("cuMemAlloc") == 5);
        CU_MUST(cuda, kNotReady, cuda.cuMemFree_v2(address));
        CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(address));
        BL_MUST(cuda.softgpu_calls("cuMemFree") == 2);
        BL_MUST(cuda.softgpu_calls("cuMemFree_v2") == 0);
      },
      {{"SOFTGPU", "fail=cuMemAlloc@2:2,fail=cuMemAlloc@4:800,fail=cuMemFree@1:600"}});
}

TEST_CASE("settings: new settings replace all, and counts restart", "[settings]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    DevicePtr address = 0;
    cuda.allocate(1);
    cuda.set("fail=cuMemAlloc@2:2,driver=12040");
    int version = 0;
    CU_MUST(cuda, kSuccess, cuda.cuDriverGetVersion(&version));
    BL_MUST(version == 12040);
    cuda.allocate(1);
    CU_MUST(cuda, kOutOfMemory, cuda.cuMemAlloc_v2(&address, 1));
    cuda.set("");
    CU_MUST(cuda, kSuccess, cuda.cuDriverGetVersion(&version));
    BL_MUST(version == 13000);
    cuda.allocate(1);
    cuda.allocate(1);
    BL_MUST(cuda.softgpu_calls("cuMemAlloc") == 2);
    BL_MUST(cuda.softgpu_set("gpus=4") == std::string("gpus: cannot change after cuInit"));
  });
}

TEST_CASE("settings: each mistake is reported and changes nothing", "[settings]") {
  in_process([](Cuda& cuda) {
    cuda.set("driver=12040");
    const auto says = [&](const char* settings, const std::string& wanted) {
      const char* const complaint = cuda.softgpu_set(settings);
      const std::string text = complaint == nullptr ? "nothing" : complaint;
      if (text != wanted) throw MustError(text + ", not " + wanted);
    };
    says("colour=red", "unknown setting \"colour\"");
    says("dmabuf", "\"dmabuf\": expected key=value");
    says("dmabuf=no,,gdr=no", "\"\": expected key=value");
    says("dmabuf=maybe", "dmabuf=maybe: expected yes or no");
    says("queues=0", "queues=0: expected a number from 1 to 128");
    says("dmabuf=no,dmabuf=no", "\"dmabuf\" is set twice");
    says("driver=new", "driver=new: expected a number from 2000 to 99990");
    says("driver=12040x", "driver=12040x: expected a number from 2000 to 99990");
    says("gpus=33", "gpus=33: expected a number from 0 to 32");
    says("bar1=256", "bar1=256: expected a size such as 256M or 16G");
    says("memory=G", "memory=G: expected a size such as 256M or 16G");
    says("compute=9", "compute=9: expected two numbers such as 9.0");
    says("flush=often", "flush=often: expected one of none, host, memops, both");
    says("ordering=some", "ordering=some: expected one of none, owner, all");
    says("missing=cuMemAlloc_v2",
         "missing: unknown call \"cuMemAlloc_v2\"; the names are those of cuda.h, without _v2");
    says("fail=cuMemAlloc", "fail=cuMemAlloc: expected CALL@N:CUresult, such as cuMemAlloc@1:2");
    says("fail=cuFoo@1:2",
         "fail: unknown call \"cuFoo\"; the names are those of cuda.h, without _v2");
    says("fail=cuMemAlloc@0:2", "fail=0: expected a number from 1 to 18446744073709551615");
    says("fail=cuMemAlloc@1:6666", "fail=6666: expected a number from 1 to 999");
    says("fail=cuMemAlloc@1:77", "fail=cuMemAlloc@1:77: 77 is not a CUresult");
    int version = 0;
    CU_MUST(cuda, kSuccess, cuda.cuDriverGetVersion(&version));
    BL_MUST(version == 12040);
  });
}

TEST_CASE("settings: a mistake in the environment is reported once and cuInit fails",
          "[settings]") {
  const CudaEnding ending = end_of_process(
      [](Cuda& cuda) {
        CU_MUST(cuda, kSystemNotReady, cuda.cuInit(0));
        CU_MUST(cuda, kSystemNotReady, cuda.cuInit(0));
        cuda.set("dmabuf=no");
        CU_MUST(cuda, kSuccess, cuda.cuInit(0));
      },
      {{"SOFTGPU", "dmabuff=no"}});
  REQUIRE(ending.complaint == "");
  REQUIRE(ending.diagnostics == "softgpu: SOFTGPU: unknown setting \"dmabuff\"\n");
}

TEST_CASE("settings: valid settings print nothing", "[settings]") {
  const CudaEnding ending =
      end_of_process([](Cuda& cuda) { cuda.start(); }, {{"SOFTGPU", "dmabuf=no,bar1=256M"}});
  REQUIRE(ending.complaint == "");
  REQUIRE(ending.diagnostics == "");
}

TEST_CASE("proc: the form of a call is that of the requested version", "[proc]") {
  in_process([](Cuda& cuda) {
    const auto symbol = [&](const char* name) { return dlsym(cuda.library(), name); };
    BL_MUST(look_up(cuda, "cuMemAlloc", 12000).function == symbol("cuMemAlloc_v2"));
    BL_MUST(look_up(cuda, "cuMemAlloc", 12000).status == kProcFound);
    BL_MUST(look_up(cuda, "cuGetProcAddress", 11030).function == symbol("cuGetProcAddress"));
    BL_MUST(look_up(cuda, "cuGetProcAddress", 12000).function == symbol("cuGetProcAddress_v2"));
    BL_MUST(look_up(cuda, "cuCtxCreate", 11030).function == symbol("cuCtxCreate_v2"));
    BL_MUST(look_up(cuda, "cuCtxCreate", 12040).function == symbol("cuCtxCreate_v3"));
    BL_MUST(look_up(cuda, "cuCtxCreate", 13000).function == symbol("cuCtxCreate_v4"));
    BL_MUST(look_up(cuda, "cuMemGetHandleForAddressRange", 11060).status ==
            kProcVersionNotSufficient);
    BL_MUST(look_up(cuda, "cuMemGetHandleForAddressRange", 11060).function == nullptr);
    BL_MUST(look_up(cuda, "cuNoSuchThing", 13000).status == kProcNotFound);
    BL_MUST(look_up(cuda, "cuMemAlloc_v2", 13000).status == kProcNotFound);
  });
}

TEST_CASE("proc: per-thread forms are found under their own names", "[proc]") {
  in_process([](Cuda& cuda) {
    for (const auto& [name, form] : {std::pair{"cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2_ptsz"},
                                     std::pair{"cuMemcpyDtoH", "cuMemcpyDtoH_v2_ptds"},
                                     std::pair{"cuStreamSynchronize", "cuStreamSynchronize_ptsz"},
                                     std::pair{"cuMemAlloc", "cuMemAlloc_v2"}}) {
      void* const wanted = dlsym(cuda.library(), form);
      BL_MUST(wanted != nullptr);
      BL_MUST(look_up(cuda, name, 13000, kProcPerThreadStream).function == wanted);
    }
  });
}

TEST_CASE("proc: a call that is missing is not found, and not supported", "[proc]") {
  in_process(
      [](Cuda& cuda) {
        cuda.start();
        const Found found = look_up(cuda, "cuMemGetHandleForAddressRange", 13000);
        BL_MUST(found.function == nullptr && found.status == kProcNotFound);
        void* function = nullptr;
        CU_MUST(cuda, kNotFound,
                cuda.cuGetProcAddress("cuMemGetHandleForAddressRange", &function, 13000, 0));
        CU_MUST(cuda, kSuccess, cuda.cuGetProcAddress("cuMemAlloc", &function, 13000, 0));
        BL_MUST(function != nullptr);
      },
      {{"SOFTGPU", "missing=cuMemGetHandleForAddressRange"}});
}

TEST_CASE("proc: an old driver knows neither newer calls nor newer versions", "[proc]") {
  in_process(
      [](Cuda& cuda) {
        cuda.start();
        void* function = nullptr;
        int status = 0;
        CU_MUST(cuda, kNotSupported,
                cuda.cuGetProcAddress_v2("cuMemAlloc", &function, 11040, 0, &status));
        CU_MUST(cuda, kNotFound,
                cuda.cuGetProcAddress("cuMemGetHandleForAddressRange", &function, 11040, 0));
        CU_MUST(cuda, kSuccess, cuda.cuGetProcAddress("cuCtxCreate", &function, 11040, 0));
        BL_MUST(function == dlsym(cuda.library(), "cuCtxCreate_v3"));
        CU_MUST(cuda, kInvalidValue, cuda.cuGetProcAddress("cuMemAlloc", &function, 11050, 0));
        CU_MUST(cuda, kInvalidValue, cuda.cuGetProcAddress(nullptr, &function, 11040, 0));
        CU_MUST(cuda, kInvalidValue, cuda.cuGetProcAddress("cuMemAlloc", nullptr, 11040, 0));
        CU_MUST(cuda, kInvalidValue, cuda.cuGetProcAddress("cuMemAlloc", &function, 11040, 8));
        CU_MUST(cuda, kNotSupported,
                cuda.cuMemGetHandleForAddressRange(&function, cuda.allocate(4096), 4096, 1, 0));
        Context* context = nullptr;
        CU_MUST(cuda, kNotSupported, cuda.cuCtxCreate_v4(&context, nullptr, 0, 0));
      },
      {{"SOFTGPU", "driver=11040"}});
}

}  // namespace
