// SPDX-License-Identifier: Apache-2.0
// Copies the bytes of a message between the memory of this process and of a peer, with the hazards
// of the fabric.
#pragma once

#include <array>
#include <cstdint>

#include "softnic/nic/deferred_writes.h"
#include "softnic/nic/mr.h"
#include "softnic/nic/pieces.h"
#include "softnic/nic/runtime.h"

namespace softnic {

// Pieces of memory, and the region of each piece whose writes are deferred.
struct MemoryPieces {
  Pieces pieces;
  std::array<MrRecord*, kMaxSge> deferring{};
  bool defers_writes = false;

  // Adds the part of a translated range that is in the window.
  void add(Window& window, const Translation& range, std::uint64_t length) noexcept {
    const std::size_t before = pieces.count;
    window.add(range.address, length);
    if (pieces.count == before || range.deferring == nullptr) return;
    deferring[before] = range.deferring;
    defers_writes = true;
  }

  // Calls visit(region, piece) for each such piece, as long as it returns true.
  template <class Visit>
  bool for_each_deferring(Visit&& visit) const {
    if (!defers_writes) [[likely]]
      return true;
    for (std::size_t i = 0; i < pieces.count; ++i) {
      if (deferring[i] != nullptr && !visit(*deferring[i], pieces.piece[i])) return false;
    }
    return true;
  }

  // The addresses to write to: staging memory where writes are deferred.
  Pieces staged() const noexcept {
    Pieces there = pieces;
    for (std::size_t i = 0; defers_writes && i < there.count; ++i) {
      if (deferring[i] == nullptr) continue;
      const auto address = reinterpret_cast<std::uint64_t>(there.piece[i].iov_base);
      there.piece[i].iov_base = reinterpret_cast<void*>(staging_address(*deferring[i], address));
    }
    return there;
  }
};

class Payload {
 public:
  Payload(Runtime& runtime, Peer& peer) noexcept : runtime_(runtime), peer_(peer) {}

  // `corrupt` flips one bit.
  Peer::Copied write(const Pieces& ours, const MemoryPieces& theirs, std::uint64_t bytes,
                     bool corrupt);
  Peer::Copied read(const Pieces& ours, const MemoryPieces& theirs, std::uint64_t bytes,
                    bool corrupt);

  // An atomic operation on eight bytes. The old value goes to `ours`.
  struct Atomic {
    bool compares;              // false: adds
    std::uint64_t compare_add;  // the expected value, or the value to add
    std::uint64_t swap;
  };
  Peer::Copied operate(const Pieces& ours, const MemoryPieces& theirs, const Atomic& operation);

 private:
  bool apply_all_deferred(const MemoryPieces& theirs);
  bool record_all_deferred(const MemoryPieces& theirs);
  Peer::Copied write_scattered(const Pieces& ours, const Pieces& theirs, std::uint64_t bytes);
  void flip_there(const iovec& piece);

  Runtime& runtime_;
  Peer& peer_;
};

}  // namespace softnic
