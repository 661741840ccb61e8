// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of the simulation. There is no common stream: each number is a hash of the seed,
// of the object that draws, and of how often that has drawn. A line less in a schedule therefore
// changes nothing for the objects that it does not concern.
#pragma once

#include <cstdint>

namespace beeline::simulation {

constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

class Draws {
 public:
  constexpr Draws(std::uint64_t seed, std::uint64_t entity) noexcept
      : base_(mix(seed ^ mix(entity))) {}

  constexpr std::uint64_t next() noexcept { return mix(base_ + ++drawn_); }
  // 0 to count - 1.
  constexpr std::uint64_t below(std::uint64_t count) noexcept { return next() % count; }
  constexpr std::int64_t between(std::int64_t least, std::int64_t most) noexcept {
    return least + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most - least) + 1));
  }
  constexpr bool one_in(std::uint64_t count) noexcept { return below(count) == 0; }
  constexpr bool percent(std::uint64_t chance) noexcept { return below(100) < chance; }

 private:
  std::uint64_t base_;
  std::uint64_t drawn_ = 0;
};

}  // namespace beeline::simulation
