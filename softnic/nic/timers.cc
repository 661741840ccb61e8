// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/timers.h"

#include <array>

namespace softnic {

std::int64_t rnr_wait_ns(std::uint32_t code) noexcept {
  static constexpr std::array<std::uint32_t, 32> kTensOfMicroseconds = {
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::int64_t{kTensOfMicroseconds[code % 32]} * 10'000;
}

}  // namespace softnic
