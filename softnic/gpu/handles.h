// SPDX-License-Identifier: Apache-2.0
// What is lent to others: handles of address ranges (the program's "dma-bufs") and the pages that
// NICs have pinned. Both last until the borrower lets go, and are noticed to be gone at the next
// call that asks.
#pragma once

#include <cstdint>
#include <vector>

#include "softnic/gpu/pages.h"

namespace softnic::gpu {

class Handles {
 public:
  // A descriptor that stands for the piece; the errno of what failed.
  beeline::Result<int, int> make(Piece piece);
  // nullptr: the descriptor is none of ours.
  const Piece* find(int fd) const;

  // A descriptor of the piece's file for a NIC, counted until it is gone and unmapped.
  beeline::Result<int, int> pin(const Piece& piece);
  std::uint64_t pinned_on(int gpu);
  std::uint64_t pinned();
  std::uint64_t open();

  // Forgets those that nobody holds any more.
  void sweep();

 private:
  // The file is empty: its identity is all that is asked of it.
  struct Handle {
    beeline::UniqueFd file;
    FileId id;
    Piece piece;
  };
  struct Pin {
    Piece piece;
    std::uint64_t user;
  };

  std::vector<Handle> handles_;
  std::vector<Pin> pins_;
  std::uint64_t next_user_ = 0;
};

}  // namespace softnic::gpu
