// SPDX-License-Identifier: Apache-2.0
// The ring of posted send work requests. It is private to the process, because only its own
// requester reads it.
//
// A post takes an entry, which is free again when a completion of that or a later request is
// polled, as in drivers. So a program that never requests a completion fills the queue here as
// well.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "softnic/fabric/arena.h"

namespace softnic {

constexpr bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}
// The response carries data into local memory.
constexpr bool is_read_or_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_READ || is_atomic(opcode);
}

struct SendWqe {
  std::uint64_t wr_id = 0;
  std::uint64_t remote_addr = 0;
  std::uint64_t length = 0;
  std::uint64_t compare_add = 0;  // of atomics
  std::uint64_t swap = 0;
  std::int64_t posted_at = 0;  // 0: not recorded
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::uint32_t rkey = 0;
  std::uint32_t imm_data = 0;
  std::uint32_t sge_count = 0;
  bool signaled = false;
  bool inlined = false;
  bool solicited = false;
  bool counted = false;  // the port's armed faults have counted it
  bool corrupt = false;
  bool discard = false;
};

class SendQueue {
 public:
  SendQueue(std::uint32_t depth, std::uint32_t max_sge, std::uint32_t max_inline)
      : depth_(depth),
        max_sge_(max_sge),
        max_inline_(max_inline),
        wqes_(std::max(depth, 1u)),
        sges_(std::size_t{std::max(depth, 1u)} * max_sge),
        inline_bytes_(std::size_t{std::max(depth, 1u)} * max_inline) {}

  // Returns 0, or the errno with which ibv_post_send refuses the request.
  int check(const ibv_send_wr& wr) const noexcept;
  // The number of free entries. Calls of this and of append() must be serialized.
  std::uint64_t room() const noexcept {
    return depth_ -
           (posted_.load(std::memory_order_relaxed) - retired_.load(std::memory_order_acquire));
  }
  // The request has passed check(), and room() is not 0.
  void append(const ibv_send_wr& wr, bool signal_all, std::int64_t posted_at) noexcept;

  SendWqe& at(std::uint64_t sequence) noexcept { return wqes_[place(sequence)]; }
  SgeRecord* sges(std::uint64_t sequence) noexcept { return &sges_[place(sequence) * max_sge_]; }
  std::uint64_t posted() const noexcept { return posted_.load(std::memory_order_seq_cst); }
  void retire(std::uint64_t sequence) noexcept {
    retired_.store(sequence + 1, std::memory_order_release);
  }
  // Empties the queue. The caller makes sure that no thread posts or runs the requester.
  void clear() noexcept {
    posted_.store(0);
    retired_.store(0);
  }

 private:
  std::size_t place(std::uint64_t sequence) const noexcept { return sequence % depth_; }
  void copy_inline(const ibv_send_wr& wr, std::size_t place, std::uint64_t length) noexcept;

  const std::uint32_t depth_;
  const std::uint32_t max_sge_;
  const std::uint32_t max_inline_;
  std::vector<SendWqe> wqes_;
  std::vector<SgeRecord> sges_;
  std::vector<std::byte> inline_bytes_;
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint64_t> retired_{0};
};

}  // namespace softnic
