// SPDX-License-Identifier: Apache-2.0
// Memory regions: registers those of this process, and checks work requests against those of any
// process.
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
  FileWindow window;  // of memory that is not host memory of the program
  Mapping staging;    // of a region with deferred writes, without a mirror
};

// Both return null and set errno on failure, as in verbs.
Mr* register_memory(Pd& pd, void* addr, std::size_t length, std::uint64_t iova,
                    unsigned int access);
Mr* register_dmabuf(Pd& pd, int fd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                    unsigned int access);

// When it returns, no requester accesses the region any more.
void deregister_memory(Mr* mr);

// The address of a work request's range in the process of the region. It is not allowed if the key
// is not valid for the protection domain, the range or the access.
struct Translation {
  bool allowed = false;
  std::uint64_t address = 0;
  MrRecord* deferring = nullptr;  // the region, if its writes are deferred
};
Translation translate(const Arena& arena, std::uint32_t slot, std::uint32_t key, std::uint32_t pd,
                      std::uint64_t address, std::uint64_t length,
                      std::uint32_t access_wanted) noexcept;

}  // namespace softnic
