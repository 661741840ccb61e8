// SPDX-License-Identifier: Apache-2.0
//
// Memory of whole pages, from mmap.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "tests/support/must.h"

namespace beeline::test {

// Lives as long as the object, or shorter.
class Pages {
 public:
  explicit Pages(size_t length, int protection = PROT_READ | PROT_WRITE, int file = -1)
      : length_(length),
        start_(mmap(place(), length, protection,
                    file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0)) {
    BL_MUST(start_ != MAP_FAILED);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    if (hole_start_ > 0) munmap(data(), hole_start_);
    if (hole_end_ < length_) munmap(data() + hole_end_, length_ - hole_end_);
  }

  uint8_t* data() const { return static_cast<uint8_t*>(start_); }

  // Once at most. The destructor leaves the hole alone: it may be somebody else's by then.
  void unmap(size_t offset, size_t length) {
    BL_MUST(hole_end_ == 0);
    BL_MUST(munmap(data() + offset, length) == 0);
    hole_start_ = offset;
    hole_end_ = offset + length;
  }

 private:
  // Far below the mappings that exist. Linux places a new one as high as it can, so a hole next to
  // them would be filled by the next mapping of any thread.
  static void* place() {
    constexpr size_t kDistance = size_t{64} << 30;
    void* const other = mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BL_MUST(other != MAP_FAILED);
    munmap(other, 1);
    return static_cast<uint8_t*>(other) - kDistance;
  }

  size_t length_;
  void* start_;
  size_t hole_start_ = 0;
  size_t hole_end_ = 0;
};

}  // namespace beeline::test
