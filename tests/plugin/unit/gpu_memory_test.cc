// SPDX-License-Identifier: Apache-2.0
//
// GPU memory, with a fake CUDA driver of a few functions that records its calls.
#include "common/gpu/memory.h"

#include <utility>
#include <vector>

#include "tests/support/catch.h"

using namespace beeline;
using namespace beeline::gpu;

namespace {

struct Driver {
  Driver() {
    current = this;
    cuda.get_error_name = [](CuResult, const char** name) {
      *name = "CUDA_ERROR";
      return CuResult::kSuccess;
    };
    cuda.get_range_handle = [](void* fd, DevicePtr, std::size_t, int, unsigned long long wish) {
      current->flags.push_back(wish);
      *static_cast<int*>(fd) = -1;
      return wish == 0 ? CuResult::kSuccess : current->to_flags;
    };
  }
  ~Driver() { current = nullptr; }

  void give_contexts() {
    cuda.primary_retain = [](Context**, Ordinal) {
      current->mode_at_retain = current->mode;
      return current->to_retain;
    };
    cuda.primary_release = [](Ordinal) { return CuResult::kSuccess; };
    cuda.context_push = [](Context*) { return CuResult::kSuccess; };
    cuda.context_pop = [](Context**) { return CuResult::kSuccess; };
  }
  void give_capture_modes() {
    cuda.exchange_capture_mode = [](int* wish) {
      std::swap(*wish, current->mode);
      return CuResult::kSuccess;
    };
  }

  static inline Driver* current = nullptr;
  Cuda cuda;
  CuResult to_flags = CuResult::kSuccess;
  CuResult to_retain = CuResult::kSuccess;
  int mode = 0;  // of this thread's captures; 0 is global
  int mode_at_retain = 0;
  std::vector<unsigned long long> flags;
};

using Flags = std::vector<unsigned long long>;

}  // namespace

TEST_CASE("gpu memory: without the PCIe flag, a dma-buf is exported by the default way",
          "[unit][gpu]") {
  Driver driver;
  Gpu gpu;
  gpu.dmabuf = true;
  const auto asked = [&] { return export_dmabuf(driver.cuda, gpu, 0x1000, 0x1000).has_value(); };
  SECTION("an ordinary GPU has one way") {
    CHECK(asked());
    CHECK(driver.flags == Flags{0});
  }
  gpu.coherent = true;
  SECTION("a driver that knows the flag") {
    CHECK(asked());
    CHECK(driver.flags == Flags{cuda_abi::kRangeFlagPcie});
  }
  SECTION("a driver that does not") {
    driver.to_flags = GENERATE(CuResult::kInvalidValue, CuResult::kNotSupported);
    CHECK(asked());
    CHECK(driver.flags == Flags{cuda_abi::kRangeFlagPcie, 0});
  }
  SECTION("another error is one") {
    driver.to_flags = CuResult::kOutOfMemory;
    CHECK_FALSE(asked());
    CHECK(driver.flags == Flags{cuda_abi::kRangeFlagPcie});
  }
}

TEST_CASE("gpu memory: a graph that another thread captures is left alone", "[unit][gpu]") {
  constexpr int kRelaxed = 2;
  Driver driver;
  driver.give_contexts();
  const auto enter = [&] { return ContextScope::enter(driver.cuda, 0); };
  SECTION("an old driver has no modes") {
    CHECK(enter());
    CHECK(driver.mode == 0);
  }
  driver.give_capture_modes();
  SECTION("while the scope lives, moved or not") {
    {
      auto scope = enter();
      REQUIRE(scope);
      CHECK(driver.mode_at_retain == kRelaxed);
      const ContextScope moved = *std::move(scope);
      CHECK(driver.mode == kRelaxed);
    }
    CHECK(driver.mode == 0);
  }
  SECTION("the mode is what it was when the context cannot be had") {
    driver.to_retain = CuResult::kOutOfMemory;
    CHECK_FALSE(enter());
    CHECK(driver.mode_at_retain == kRelaxed);
    CHECK(driver.mode == 0);
  }
}
