// SPDX-License-Identifier: Apache-2.0
//
// Memory of which every byte is accounted for: an image beside it says what each byte has to be,
// and guard bytes stand on both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/pages.h"

namespace beeline::test {

// Bytes that depend on the seed and on the place, so that shifted or swapped data shows.
void fill_pattern(uint8_t* bytes, size_t size, uint32_t seed);

// From here on, whoever touches these pages faults; nobody else gets their addresses.
void withdraw(const Pages& pages, size_t size);

class Memory {
 public:
  // Starts as kFresh everywhere.
  explicit Memory(size_t size);

  size_t size() const noexcept { return size_; }
  uint8_t* at(size_t offset = 0) const noexcept { return pages_.data() + kGuard + offset; }

  // What a sender does: writes the seed's pattern there.
  void fill(size_t offset, size_t size, uint32_t seed);
  // What a receiver waits for: from here on, the seed's pattern has to be there.
  void expect(size_t offset, size_t size, uint32_t seed);
  // Makes a place fresh again.
  void wipe(size_t offset, size_t size);

  // Throws unless every byte, the guards too, is what it has to be.
  void must_hold() const;
  // The same for a part.
  void must_hold(size_t offset, size_t size) const;
  // A look while somebody may still be writing there.
  bool holds(size_t offset, size_t size) const;

  static constexpr uint8_t kFresh = 0xA5;
  static constexpr size_t kGuard = 4096;

 private:
  size_t size_;
  Pages pages_;
  std::vector<uint8_t> image_;  // guards included
};

}  // namespace beeline::test
