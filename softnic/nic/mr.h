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
  Mr(Pd& the_owner, std::uint32_t the_index, std::uint32_t key) noexcept;
  ~Mr();
  Mr(const Mr&) = delete;
  Mr& operator=(const Mr&) = delete;
  static Mr& of(ibv_mr* mr) noexcept { return *static_cast<Mr*>(mr); }

  Pd& owner;
  const std::uint32_t index;
  FileWindow window;  // of memory that is not the program's own pages
  Mapping staging;    // of a region that hides what is written (HazardRecord)
};

// Null with errno set, as verbs wants it.
Mr* register_memory(Pd& pd, void* addr, std::size_t length, std::uint64_t iova,
                    unsigned int access);
Mr* register_dmabuf(Pd& pd, int fd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                    unsigned int access);

// When it returns, nobody touches the region any more.
void deregister_memory(Mr* mr);

// Where a work request's range lies in the region's process, or nothing if the key is not valid for
// the PD, the range or the access wanted.
struct Translation {
  bool allowed = false;
  std::uint64_t address = 0;
  MrRecord* deferring = nullptr;  // the region, if it hides what is written
};
Translation translate(const Arena& arena, std::uint32_t slot, std::uint32_t key, std::uint32_t pd,
                      std::uint64_t address, std::uint64_t length,
                      std::uint32_t access_wanted) noexcept;

}  // namespace softnic
