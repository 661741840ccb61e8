// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/send_queue.h"

#include <cerrno>
#include <cstring>

namespace softnic {
namespace {

bool is_opcode(ibv_wr_opcode opcode) {
  return (opcode >= IBV_WR_RDMA_WRITE && opcode <= IBV_WR_DRIVER1) || opcode == IBV_WR_ATOMIC_WRITE;
}

constexpr std::uint64_t kAtomicBytes = 8;

bool is_supported(ibv_wr_opcode opcode) {
  return is_atomic(opcode) || opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
         opcode == IBV_WR_RDMA_READ;
}

std::uint64_t total_length(const ibv_send_wr& wr) {
  std::uint64_t length = 0;
  for (int i = 0; i < wr.num_sge; ++i) length += wr.sg_list[i].length;
  return length;
}

}  // namespace

int SendQueue::check(const ibv_send_wr& wr) const noexcept {
  if (!is_opcode(wr.opcode)) return EINVAL;
  if (!is_supported(wr.opcode)) return EOPNOTSUPP;
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > max_sge_) return EINVAL;
  if (is_atomic(wr.opcode) && total_length(wr) != kAtomicBytes) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    if (is_read_or_atomic(wr.opcode) || total_length(wr) > max_inline_) return EINVAL;
  }
  return 0;
}

void SendQueue::append(const ibv_send_wr& wr, bool signal_all, std::int64_t posted_at) noexcept {
  const std::uint64_t sequence = posted_.load(std::memory_order_relaxed);
  SendWqe& wqe = at(sequence);
  wqe = {};
  wqe.wr_id = wr.wr_id;
  wqe.opcode = wr.opcode;
  wqe.imm_data = wr.imm_data;
  wqe.length = total_length(wr);
  wqe.posted_at = posted_at;
  wqe.signaled = signal_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  wqe.inlined = (wr.send_flags & IBV_SEND_INLINE) != 0;
  wqe.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  if (is_atomic(wr.opcode)) {
    wqe.remote_addr = wr.wr.atomic.remote_addr;
    wqe.rkey = wr.wr.atomic.rkey;
    wqe.compare_add = wr.wr.atomic.compare_add;
    wqe.swap = wr.wr.atomic.swap;
  } else if (wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM) {
    wqe.remote_addr = wr.wr.rdma.remote_addr;
    wqe.rkey = wr.wr.rdma.rkey;
  }
  if (wqe.inlined) {
    copy_inline(wr, place(sequence), wqe.length);
    wqe.sge_count = 1;
  } else {
    wqe.sge_count = static_cast<std::uint32_t>(wr.num_sge);
    for (std::uint32_t i = 0; i < wqe.sge_count; ++i) {
      sges(sequence)[i] = {wr.sg_list[i].addr, wr.sg_list[i].length, wr.sg_list[i].lkey};
    }
  }
  posted_.store(sequence + 1, std::memory_order_seq_cst);
}

void SendQueue::copy_inline(const ibv_send_wr& wr, std::size_t place,
                            std::uint64_t length) noexcept {
  std::byte* to = inline_bytes_.data() + place * max_inline_;
  sges_[place * max_sge_] = {reinterpret_cast<std::uint64_t>(to),
                             static_cast<std::uint32_t>(length), 0};
  for (int i = 0; i < wr.num_sge; ++i) {
    if (wr.sg_list[i].length == 0) continue;
    std::memcpy(to, reinterpret_cast<const void*>(wr.sg_list[i].addr), wr.sg_list[i].length);
    to += wr.sg_list[i].length;
  }
}

}  // namespace softnic
