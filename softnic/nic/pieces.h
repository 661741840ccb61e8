// SPDX-License-Identifier: Apache-2.0
// Pieces of memory (iovec), and the selection of a part of a scattered message.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "softnic/nic/limits.h"

namespace softnic {

struct Pieces {
  std::array<iovec, kMaxSge> piece;
  std::size_t count = 0;
};

// Of a sequence of memory ranges, collects the part [offset, offset + length).
class Window {
 public:
  Window(std::uint64_t offset, std::uint64_t length, Pieces& pieces) noexcept
      : skip_(offset), left_(length), pieces_(pieces) {}

  void add(std::uint64_t address, std::uint64_t length) noexcept {
    const std::uint64_t skipped = std::min(skip_, length);
    skip_ -= skipped;
    const std::uint64_t taken = std::min(left_, length - skipped);
    if (taken == 0) return;
    left_ -= taken;
    pieces_.piece[pieces_.count++] = {reinterpret_cast<void*>(address + skipped), taken};
  }

 private:
  std::uint64_t skip_;
  std::uint64_t left_;
  Pieces& pieces_;
};

}  // namespace softnic
