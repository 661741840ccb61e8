// SPDX-License-Identifier: Apache-2.0
// Reproducible random numbers: the same seed gives the same sequence.
#pragma once

#include <cstdint>

namespace softnic {

// One step of splitmix64. Similar inputs give unrelated outputs.
constexpr std::uint64_t splitmix64(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

class Random {
 public:
  static constexpr std::uint32_t kCertain = 1'000'000;

  explicit Random(std::uint64_t seed = 0) noexcept : state_(splitmix64(seed)) {}

  // From 0 to `limit`, both included.
  std::uint64_t up_to(std::uint64_t limit) noexcept {
    return limit == UINT64_MAX ? next() : next() % (limit + 1);
  }
  bool happens(std::uint32_t ppm) noexcept { return next() % kCertain < ppm; }

 private:
  std::uint64_t next() noexcept { return state_ = splitmix64(state_); }

  std::uint64_t state_;
};

}  // namespace softnic
