// SPDX-License-Identifier: Apache-2.0
//
// GPU memory, with a driver of a few functions that says what it was asked.
#include "plugin/gpu/memory.h"

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

  static inline Driver* current = nullptr;
  Cuda cuda;
  CuResult to_flags = CuResult::kSuccess;
  std::vector<unsigned long long> flags;
};

using Flags = std::vector<unsigned long long>;

}  // namespace

TEST_CASE("gpu memory: a driver that cannot be asked for PCIe is asked for what it has",
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
