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
        start_(mmap(nullptr, length, protection,
                    file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0)) {
    BL_MUST(start_ != MAP_FAILED);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(start_, length_); }

  uint8_t* data() const { return static_cast<uint8_t*>(start_); }
  void unmap(size_t offset, size_t length) const { munmap(data() + offset, length); }

 private:
  size_t length_;
  void* start_;
};

}  // namespace beeline::test
