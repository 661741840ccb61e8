// SPDX-License-Identifier: Apache-2.0
// Access to a process of the fabric (including this one): its mapped arena, and its memory.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/base/fd.h"
#include "softnic/fabric/arena.h"
#include "softnic/fabric/fabric.h"

namespace softnic {

class Peer {
 public:
  // Returns null if the slot is empty or its process is about to leave.
  static std::shared_ptr<Peer> open(const Fabric& fabric, std::uint32_t slot);

  Peer(const Fabric& fabric, std::uint32_t slot, std::uint64_t epoch, Mapping arena,
       beeline::UniqueFd memory);

  const Arena& arena() const noexcept { return arena_; }
  std::uint32_t slot() const noexcept { return slot_; }
  std::uint64_t epoch() const noexcept { return epoch_; }

  // Whether the process has not left the fabric. That a process was killed is found by is_alive(),
  // or when the kernel refuses a copy.
  bool has_seat() const noexcept { return fabric_.header().slots[slot_].epoch.load() == epoch_; }
  bool is_alive() const { return has_seat() && fabric_.is_slot_alive(slot_); }

  enum class Copied { kDone, kFault, kGone };
  // Copies `bytes` between pieces of this process and pieces of the peer. Both lists have that
  // size.
  Copied write(const iovec* ours, std::size_t our_count, const iovec* theirs,
               std::size_t their_count, std::size_t bytes);
  Copied read(const iovec* ours, std::size_t our_count, const iovec* theirs,
              std::size_t their_count, std::size_t bytes);

 private:
  bool is_same_process();

  const Fabric& fabric_;
  std::uint32_t slot_;
  std::uint64_t epoch_;
  pid_t pid_;
  Mapping mapping_;
  Arena arena_;
  beeline::UniqueFd memory_;  // /proc/PID/mem; empty without permission
  std::atomic<std::int64_t> checked_at_ns_{0};
};

}  // namespace softnic
