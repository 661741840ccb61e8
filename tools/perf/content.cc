// SPDX-License-Identifier: Apache-2.0
//
// The bytes are computed eight at a time.
#include "tools/perf/content.h"

#include <algorithm>
#include <cstring>

namespace beeline::perf {
namespace {

constexpr size_t kWord = sizeof(std::uint64_t);

}  // namespace

// The finalizer of splitmix64: every bit of the value affects every bit of the result.
ContentId mix(std::uint64_t value) noexcept {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

void fill(std::uint8_t* data, size_t size, ContentId id) noexcept {
  for (size_t at = 0; at < size; at += kWord) {
    const std::uint64_t word = mix(id + at);
    std::memcpy(data + at, &word, std::min(kWord, size - at));
  }
}

Mismatch compare(const std::uint8_t* data, size_t size, ContentId id) noexcept {
  Mismatch mismatch;
  for (size_t at = 0; at < size; at += kWord) {
    const size_t length = std::min(kWord, size - at);
    const std::uint64_t word = mix(id + at);
    if (std::memcmp(data + at, &word, length) == 0) continue;
    std::uint8_t wanted[kWord];
    std::memcpy(wanted, &word, kWord);
    for (size_t i = 0; i < length; ++i) {
      if (data[at + i] == wanted[i]) continue;
      if (mismatch.count++ == 0) {
        mismatch.first = at + i;
        mismatch.found = data[at + i];
        mismatch.wanted = wanted[i];
      }
    }
  }
  return mismatch;
}

}  // namespace beeline::perf
