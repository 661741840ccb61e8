// SPDX-License-Identifier: Apache-2.0
// Memory regions: registering our own, and checking work requests against anybody's.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "softnic/fabric/arena.h"
#include "softnic/nic/context.h"
#include "softnic/nic/memory_source.h"

namespace softnic {

struct Mr : ibv_mr {
  Mr(Pd& the_owner, uint32_t the_index, uint32_t key) noexcept;
  ~Mr();
  Mr(const Mr&) = delete;
  Mr& operator=(const Mr&) = delete;
  static Mr& of(ibv_mr* mr) noexcept { return *static_cast<Mr*>(mr); }

  Pd& owner;
  const uint32_t index;
  FileWindow window;  // of memory that is not the program's own pages
  Mapping shadow;     // of a region that hides what is written (HazardRecord)
};

// Null with errno set, as verbs wants it.
Mr* register_memory(Pd& pd, void* addr, size_t length, uint64_t iova, unsigned int access);
Mr* register_dmabuf(Pd& pd, int fd, uint64_t offset, size_t length, uint64_t iova,
                    unsigned int access);

// When it returns, nobody touches the region any more.
void deregister_memory(Mr* mr);

// Where a work request's range lies in the region's process, or nothing if the key is not valid for
// the PD, the range or the access wanted.
struct Translation {
  bool allowed = false;
  uint64_t address = 0;
  MrRecord* hider = nullptr;  // the region, if it hides what is written
};
Translation translate(const Arena& arena, uint32_t slot, uint32_t key, uint32_t pd,
                      uint64_t address, uint64_t length, uint32_t access_wanted) noexcept;

}  // namespace softnic
