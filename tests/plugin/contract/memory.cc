// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/contract/memory.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace beeline::test {

// Changes within a byte, across pages and with the seed; never periodic in a power of two.
void fill_pattern(uint8_t* bytes, size_t size, uint32_t seed) {
  uint64_t mixed = seed * 0xC2B2AE3D27D4EB4Fu;
  for (size_t i = 0; i < size; ++i) {
    mixed += 0x9E3779B97F4A7C15u;
    bytes[i] = static_cast<uint8_t>(mixed >> 56);
  }
}

void withdraw(const Pages& pages, size_t size) {
  BL_MUST(mprotect(pages.data(), size, PROT_NONE) == 0);
}

Memory::Memory(size_t size)
    : size_(size), pages_(size + 2 * kGuard), image_(size + 2 * kGuard, kFresh) {
  std::memset(pages_.data(), kFresh, image_.size());
}

void Memory::fill(size_t offset, size_t size, uint32_t seed) {
  expect(offset, size, seed);
  std::copy_n(image_.data() + kGuard + offset, size, at(offset));
}

void Memory::expect(size_t offset, size_t size, uint32_t seed) {
  BL_MUST(offset <= size_ && size <= size_ - offset);
  fill_pattern(image_.data() + kGuard + offset, size, seed);
}

void Memory::wipe(size_t offset, size_t size) {
  BL_MUST(offset <= size_ && size <= size_ - offset);
  std::memset(image_.data() + kGuard + offset, kFresh, size);
  std::memset(at(offset), kFresh, size);
}

void Memory::must_hold() const {
  const auto differs = [&](size_t from, size_t size) {
    return std::memcmp(pages_.data() + from, image_.data() + from, size) != 0;
  };
  if (differs(0, kGuard)) throw MustError("bytes before the buffer were changed");
  if (differs(kGuard + size_, kGuard)) throw MustError("bytes behind the buffer were changed");
  must_hold(0, size_);
}

void Memory::must_hold(size_t offset, size_t size) const {
  BL_MUST(offset <= size_ && size <= size_ - offset);
  const uint8_t* const wanted = image_.data() + kGuard + offset;
  const uint8_t* const found = at(offset);
  if (size == 0 || std::memcmp(found, wanted, size) == 0) return;
  const auto place =
      static_cast<size_t>(std::mismatch(wanted, wanted + size, found).first - wanted);
  throw MustError("byte " + std::to_string(offset + place) + " (" + std::to_string(place) + " of " +
                  std::to_string(size) + ") is " + std::to_string(found[place]) + ", not " +
                  std::to_string(wanted[place]));
}

// The thread sanitizer rightly reports a race with the writer: a GPU reads flags in the same way.
__attribute__((no_sanitize("thread"))) bool Memory::holds(size_t offset, size_t size) const {
  const volatile uint8_t* const found = at(offset);
  const uint8_t* const wanted = image_.data() + kGuard + offset;
  for (size_t i = 0; i < size; ++i) {
    if (found[i] != wanted[i]) return false;
  }
  return true;
}

}  // namespace beeline::test
