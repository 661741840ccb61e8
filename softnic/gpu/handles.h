// SPDX-License-Identifier: Apache-2.0
// Handles of address ranges (the program's "dma-bufs"), and pages that NICs have pinned. Both exist
// until their users close or unmap them; that they are gone is detected in the next call that asks.
#pragma once

#include <cstdint>
#include <vector>

#include "softnic/gpu/pages.h"

namespace softnic::gpu {

class Handles {
 public:
  // Creates a descriptor for the piece. The error is an errno.
  beeline::Result<int, int> make(Piece piece);
  // Returns nullptr if the descriptor is not a handle.
  const Piece* find(int fd) const;

  // Creates a descriptor of the piece's file for a NIC. It counts as pinned until it is closed and
  // unmapped.
  beeline::Result<int, int> pin(const Piece& piece);
  std::uint64_t pinned_on(int gpu);
  std::uint64_t pinned();
  std::uint64_t open();

  // Removes entries that have no user any more.
  void sweep();

 private:
  // The file has no contents; only its identity is used.
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
