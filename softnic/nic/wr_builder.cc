// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/wr_builder.h"

#include <cerrno>

#include "softnic/nic/qp.h"

namespace softnic {
namespace {

WrBuilder& builder(ibv_qp_ex* qp) { return Qp::of(qp).builder(); }

ibv_send_wr& add(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  return builder(qp).add(opcode, qp->wr_id, qp->wr_flags);
}

void add_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t remote_addr) {
  ibv_send_wr& wr = add(qp, opcode);
  wr.wr.rdma.rkey = rkey;
  wr.wr.rdma.remote_addr = remote_addr;
}

void wr_send(ibv_qp_ex* qp) { add(qp, IBV_WR_SEND); }
void wr_send_imm(ibv_qp_ex* qp, __be32 imm_data) {
  add(qp, IBV_WR_SEND_WITH_IMM).imm_data = imm_data;
}
void wr_rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr) {
  add_rdma(qp, IBV_WR_RDMA_READ, rkey, remote_addr);
}
void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr) {
  add_rdma(qp, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}
void wr_rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr,
                       __be32 imm_data) {
  ibv_send_wr& wr = add(qp, IBV_WR_RDMA_WRITE_WITH_IMM);
  wr.wr.rdma.rkey = rkey;
  wr.wr.rdma.remote_addr = remote_addr;
  wr.imm_data = imm_data;
}

void add_atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t remote_addr,
                std::uint64_t compare_add, std::uint64_t swap) {
  ibv_send_wr& wr = add(qp, opcode);
  wr.wr.atomic.rkey = rkey;
  wr.wr.atomic.remote_addr = remote_addr;
  wr.wr.atomic.compare_add = compare_add;
  wr.wr.atomic.swap = swap;
}
void wr_atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr,
                       std::uint64_t compare, std::uint64_t swap) {
  add_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}
void wr_atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr,
                         std::uint64_t add) {
  add_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t addr, std::uint32_t length) {
  const ibv_sge piece = {addr, length, lkey};
  builder(qp).set_pieces(&piece, 1);
}
void wr_set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* pieces) {
  builder(qp).set_pieces(pieces, count);
}
void wr_set_inline_data(ibv_qp_ex* qp, void* addr, std::size_t length) {
  const ibv_data_buf buffer = {addr, length};
  builder(qp).set_inline(&buffer, 1);
}
void wr_set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* buffers) {
  builder(qp).set_inline(buffers, count);
}

void wr_start(ibv_qp_ex* qp) { builder(qp).start(); }
void wr_abort(ibv_qp_ex* qp) { builder(qp).start(); }
int wr_complete(ibv_qp_ex* qp) { return builder(qp).post(Qp::of(qp)); }

// Unsupported requests make the whole batch fail in ibv_wr_complete, as the manual requires.
void wr_bind_mw(ibv_qp_ex* qp, ibv_mw*, std::uint32_t, const ibv_mw_bind_info*) {
  builder(qp).reject(EOPNOTSUPP);
}
void wr_local_inv(ibv_qp_ex* qp, std::uint32_t) { builder(qp).reject(EOPNOTSUPP); }
void wr_send_inv(ibv_qp_ex* qp, std::uint32_t) { builder(qp).reject(EOPNOTSUPP); }
void wr_send_tso(ibv_qp_ex* qp, void*, std::uint16_t, std::uint16_t) {
  builder(qp).reject(EOPNOTSUPP);
}
void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah*, std::uint32_t, std::uint32_t) {
  builder(qp).reject(EOPNOTSUPP);
}
void wr_set_xrc_srqn(ibv_qp_ex* qp, std::uint32_t) { builder(qp).reject(EOPNOTSUPP); }
void wr_atomic_write(ibv_qp_ex* qp, std::uint32_t, std::uint64_t, const void*) {
  builder(qp).reject(EOPNOTSUPP);
}

}  // namespace

void WrBuilder::start() noexcept {
  count_ = 0;
  error_ = 0;
}

ibv_send_wr& WrBuilder::add(ibv_wr_opcode opcode, std::uint64_t wr_id, unsigned int flags) {
  if (count_ == staged_.size()) staged_.emplace_back();
  Staged& staged = staged_[count_++];
  staged.pieces.clear();
  staged.wr = {};
  staged.wr.opcode = opcode;
  staged.wr.wr_id = wr_id;
  staged.wr.send_flags = flags & ~unsigned{IBV_SEND_INLINE};
  return staged.wr;
}

void WrBuilder::set_pieces(const ibv_sge* pieces, std::size_t count) {
  if (count_ != 0) staged_[count_ - 1].pieces.assign(pieces, pieces + count);
}

// The program may reuse its buffers as soon as the setter returns.
void WrBuilder::set_inline(const ibv_data_buf* buffers, std::size_t count) {
  if (count_ == 0) return;
  Staged& staged = staged_[count_ - 1];
  std::vector<std::byte>& bytes = staged.inline_bytes;
  bytes.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const auto* from = static_cast<const std::byte*>(buffers[i].addr);
    bytes.insert(bytes.end(), from, from + buffers[i].length);
  }
  staged.wr.send_flags |= IBV_SEND_INLINE;
  staged.pieces.assign(1, {reinterpret_cast<std::uint64_t>(bytes.data()),
                           static_cast<std::uint32_t>(bytes.size()), 0});
}

int WrBuilder::post(Qp& qp) {
  if (error_ != 0 || count_ == 0) return error_;
  for (std::size_t i = 0; i < count_; ++i) {
    Staged& staged = staged_[i];
    staged.wr.sg_list = staged.pieces.data();
    staged.wr.num_sge = static_cast<int>(staged.pieces.size());
    staged.wr.next = i + 1 < count_ ? &staged_[i + 1].wr : nullptr;
  }
  return qp.post_whole_batch(&staged_.front().wr, count_);
}

void install_wr_functions(ibv_qp_ex& qp) {
  qp.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
  qp.wr_atomic_fetch_add = wr_atomic_fetch_add;
  qp.wr_bind_mw = wr_bind_mw;
  qp.wr_local_inv = wr_local_inv;
  qp.wr_rdma_read = wr_rdma_read;
  qp.wr_rdma_write = wr_rdma_write;
  qp.wr_rdma_write_imm = wr_rdma_write_imm;
  qp.wr_send = wr_send;
  qp.wr_send_imm = wr_send_imm;
  qp.wr_send_inv = wr_send_inv;
  qp.wr_send_tso = wr_send_tso;
  qp.wr_set_ud_addr = wr_set_ud_addr;
  qp.wr_set_xrc_srqn = wr_set_xrc_srqn;
  qp.wr_set_inline_data = wr_set_inline_data;
  qp.wr_set_inline_data_list = wr_set_inline_data_list;
  qp.wr_set_sge = wr_set_sge;
  qp.wr_set_sge_list = wr_set_sge_list;
  qp.wr_start = wr_start;
  qp.wr_complete = wr_complete;
  qp.wr_abort = wr_abort;
  qp.wr_atomic_write = wr_atomic_write;
}

}  // namespace softnic
