// SPDX-License-Identifier: Apache-2.0
//
// Memory that checks all of its bytes: it keeps a copy of the expected content, and guard bytes on
// both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/pages.h"

namespace beeline::test {

// Writes bytes that depend on the seed and on the offset, so that shifted or swapped data differs.
void fill_pattern(uint8_t* bytes, size_t size, uint32_t seed);

// Makes every access to these pages fault, while their addresses stay reserved.
void withdraw(const Pages& pages, size_t size);

class Memory {
 public:
  // Every byte is kFresh at first.
  explicit Memory(size_t size);

  size_t size() const noexcept { return size_; }
  uint8_t* at(size_t offset = 0) const noexcept { return pages_.data() + kGuard + offset; }

  // Writes the seed's pattern there, and expects it.
  void fill(size_t offset, size_t size, uint32_t seed);
  // From now on expects the seed's pattern there, which is to arrive.
  void expect(size_t offset, size_t size, uint32_t seed);
  // Writes kFresh there, and expects it.
  void wipe(size_t offset, size_t size);

  // Throws unless every byte, also of the guards, is as expected.
  void must_hold() const;
  // The same for a part.
  void must_hold(size_t offset, size_t size) const;
  // Compares while a device may still be writing there.
  bool holds(size_t offset, size_t size) const;

  static constexpr uint8_t kFresh = 0xA5;
  static constexpr size_t kGuard = 4096;

 private:
  size_t size_;
  Pages pages_;
  std::vector<uint8_t> image_;  // guards included
};

}  // namespace beeline::test
