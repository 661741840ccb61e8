// SPDX-License-Identifier: Apache-2.0
//
// A data pattern that depends on message and position, so that lost, stale and shifted bytes are
// detected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace beeline::bench {

// A request to the receiver to check the first bytes of its memory.
struct Check {
  uint64_t seed = 0;
  size_t bytes = 0;  // 0: no more
};

inline uint64_t pattern(uint64_t seed, size_t place) { return (seed + place) * 0x9E3779B97F4A7C15; }

inline void fill(std::byte* area, const Check& check) {
  for (size_t at = 0; at < check.bytes; at += sizeof(uint64_t)) {
    const uint64_t word = pattern(check.seed, at);
    std::memcpy(area + at, &word, sizeof(word));
  }
}

inline size_t count_wrong(const std::byte* area, const Check& check) {
  size_t wrong = 0;
  for (size_t at = 0; at < check.bytes; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, area + at, sizeof(word));
    for (uint64_t off = word ^ pattern(check.seed, at); off != 0; off >>= 8) {
      wrong += (off & 0xff) != 0;
    }
  }
  return wrong;
}

}  // namespace beeline::bench
