// SPDX-License-Identifier: Apache-2.0
//
// Executes a posted request before the call returns: the payload is copied, and the completions are
// in the queues of both ends. It checks what a device would check, and a request fails as it would
// on a device.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "tests/support/nullverbs/counters.h"
#include "tests/support/nullverbs/objects.h"
#include "tests/support/nullverbs/operations.h"
#include "tests/support/nullverbs/price.h"
#include "tests/support/nullverbs/tables.h"

namespace nullverbs {
namespace {

std::uint32_t bytes_of(const ibv_send_wr& wr) noexcept {
  std::uint32_t bytes = 0;
  for (int i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
  return bytes;
}

// Copies between the scatter-gather entries of the request and one address.
template <class Copy>
ibv_wc_status for_each_piece(const Qp& qp, const ibv_send_wr& wr, std::uint32_t access, Copy copy) {
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& piece = wr.sg_list[i];
    if (piece.length == 0) continue;
    std::byte* const at =
        (wr.send_flags & IBV_SEND_INLINE) != 0
            ? reinterpret_cast<std::byte*>(piece.addr)
            : Tables::instance().find(piece.lkey, piece.addr, piece.length, qp.domain, access);
    if (at == nullptr) return IBV_WC_LOC_PROT_ERR;
    copy(at, piece.length);
  }
  return IBV_WC_SUCCESS;
}

ibv_wc_status write(const Qp& qp, const Qp& peer, const ibv_send_wr& wr, std::uint32_t bytes) {
  if (bytes == 0) return IBV_WC_SUCCESS;  // needs no key
  const auto& remote = wr.wr.rdma;
  std::byte* to = (peer.access & IBV_ACCESS_REMOTE_WRITE) == 0
                      ? nullptr
                      : Tables::instance().find(remote.rkey, remote.remote_addr, bytes, peer.domain,
                                                IBV_ACCESS_REMOTE_WRITE);
  if (to == nullptr) return IBV_WC_REM_ACCESS_ERR;
  return for_each_piece(qp, wr, 0, [&](const std::byte* from, std::uint32_t length) {
    std::memcpy(to, from, length);
    to += length;
  });
}

ibv_wc_status read(const Qp& qp, const Qp& peer, const ibv_send_wr& wr, std::uint32_t bytes) {
  if (bytes == 0) return IBV_WC_SUCCESS;
  const auto& remote = wr.wr.rdma;
  const std::byte* from = (peer.access & IBV_ACCESS_REMOTE_READ) == 0
                              ? nullptr
                              : Tables::instance().find(remote.rkey, remote.remote_addr, bytes,
                                                        peer.domain, IBV_ACCESS_REMOTE_READ);
  if (from == nullptr) return IBV_WC_REM_ACCESS_ERR;
  return for_each_piece(qp, wr, IBV_ACCESS_LOCAL_WRITE, [&](std::byte* to, std::uint32_t length) {
    std::memcpy(to, from, length);
    from += length;
  });
}

ibv_wc_status send(const Qp& qp, const Qp& peer, const ibv_send_wr& wr, std::uint32_t bytes,
                   const Receive& receive) {
  if (bytes == 0) return IBV_WC_SUCCESS;
  if (bytes > receive.place.length) return IBV_WC_REM_INV_REQ_ERR;
  std::byte* to = Tables::instance().find(receive.place.lkey, receive.place.addr, bytes,
                                          peer.domain, IBV_ACCESS_LOCAL_WRITE);
  if (to == nullptr) return IBV_WC_REM_OP_ERR;
  return for_each_piece(qp, wr, 0, [&](const std::byte* from, std::uint32_t length) {
    std::memcpy(to, from, length);
    to += length;
  });
}

// Called with the peer's lock held. A request that uses a receive gives the peer a completion.
ibv_wc_status carry_to(const Qp& qp, Qp& peer, const ibv_send_wr& wr, std::uint32_t bytes) {
  const bool is_send = wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM;
  if (wr.opcode == IBV_WR_RDMA_READ) return read(qp, peer, wr, bytes);
  if (wr.opcode == IBV_WR_RDMA_WRITE) return write(qp, peer, wr, bytes);
  if (peer.receives.empty()) return IBV_WC_RNR_RETRY_EXC_ERR;
  const Receive receive = peer.receives.pop();
  const ibv_wc_status status =
      is_send ? send(qp, peer, wr, bytes, receive) : write(qp, peer, wr, bytes);
  if (status != IBV_WC_SUCCESS) return status;
  const bool has_immediate = wr.opcode != IBV_WR_SEND;
  Cq::of(peer.base.recv_cq)
      .push({.wr_id = receive.wr_id,
             .qp_num = peer.base.qp_num,
             .byte_len = bytes,
             .imm_data = has_immediate ? wr.imm_data : 0,
             .frees = 0,
             .status = IBV_WC_SUCCESS,
             .opcode = static_cast<std::uint8_t>((is_send ? 0 : 1) & 31),
             .is_receive = 1,
             .has_immediate = has_immediate});
  return status;
}

ibv_wc_status carry(const Qp& qp, const ibv_send_wr& wr, std::uint32_t bytes) {
  Qp* const peer = Tables::instance().qp(qp.peer);
  if (peer == nullptr) return IBV_WC_RETRY_EXC_ERR;
  const std::lock_guard lock(peer->lock);
  const bool listens = peer->state() == IBV_QPS_RTR || peer->state() == IBV_QPS_RTS;
  if (!listens || peer->peer != qp.base.qp_num) return IBV_WC_RETRY_EXC_ERR;
  return carry_to(qp, *peer, wr, bytes);
}

bool is_known(ibv_wr_opcode opcode) noexcept {
  return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
         opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_READ;
}

std::uint8_t completion_opcode(ibv_wr_opcode opcode) noexcept {
  if (opcode == IBV_WR_RDMA_READ) return IBV_WC_RDMA_READ;
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
}

void complete(Qp& qp, const ibv_send_wr& wr, std::uint32_t bytes, ibv_wc_status status) {
  Cq::of(qp.base.send_cq)
      .push({.wr_id = wr.wr_id,
             .qp_num = qp.base.qp_num,
             .byte_len = bytes,
             .imm_data = 0,
             .frees = static_cast<std::uint16_t>(qp.silent),
             .status = static_cast<std::uint8_t>(status),
             .opcode = static_cast<std::uint8_t>(completion_opcode(wr.opcode) & 31),
             .is_receive = 0,
             .has_immediate = 0});
  qp.silent = 0;
}

int refuse_post(int error) noexcept {
  count(&NullverbsReport::failures);
  return error;
}

int post_one(Qp& qp, const ibv_send_wr& wr) {
  const bool flushed = qp.state() == IBV_QPS_ERR;
  if (!flushed && qp.state() != IBV_QPS_RTS) [[unlikely]]
    return refuse_post(EINVAL);
  const std::uint32_t bytes = bytes_of(wr);
  const bool too_long = (wr.send_flags & IBV_SEND_INLINE) != 0 && bytes > qp.cap.max_inline_data;
  if (!is_known(wr.opcode) || too_long ||
      static_cast<std::uint32_t>(wr.num_sge) > qp.cap.max_send_sge) [[unlikely]] {
    return refuse_post(EINVAL);
  }
  if (qp.sends_open.load(std::memory_order_relaxed) >= qp.cap.max_send_wr) [[unlikely]]
    return refuse_post(ENOMEM);
  qp.sends_open.fetch_add(1, std::memory_order_relaxed);
  ++qp.silent;
  count(&NullverbsReport::send_requests);
  const ibv_wc_status status = flushed ? IBV_WC_WR_FLUSH_ERR : carry(qp, wr, bytes);
  const bool signalled = qp.signals_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  if (signalled || status != IBV_WC_SUCCESS) complete(qp, wr, bytes, status);
  if (status != IBV_WC_SUCCESS && !flushed) [[unlikely]]
    qp.set_state(IBV_QPS_ERR);
  return 0;
}

}  // namespace

int post_send(ibv_qp* base, ibv_send_wr* wr, ibv_send_wr** bad) {
  Qp& qp = Qp::of(base);
  const Visit visit(qp.one_sender);
  count(&NullverbsReport::send_posts);
  doorbell_price.pay();
  for (; wr != nullptr; wr = wr->next) {
    if (const int rc = post_one(qp, *wr); rc != 0) {
      *bad = wr;
      return rc;
    }
  }
  return 0;
}

int post_recv(ibv_qp* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Qp& qp = Qp::of(base);
  const Visit visit(qp.one_receiver);
  count(&NullverbsReport::recv_posts);
  doorbell_price.pay();
  const std::lock_guard lock(qp.lock);
  for (; wr != nullptr; wr = wr->next) {
    const bool is_bad = qp.state() == IBV_QPS_RESET ||
                        static_cast<std::uint32_t>(wr->num_sge) > qp.cap.max_recv_sge;
    if (is_bad || qp.receives.full()) [[unlikely]] {
      *bad = wr;
      return refuse_post(is_bad ? EINVAL : ENOMEM);
    }
    count(&NullverbsReport::recv_requests);
    qp.receives.push(
        {.wr_id = wr->wr_id, .place = wr->num_sge != 0 ? wr->sg_list[0] : ibv_sge{0, 0, 0}});
  }
  if (qp.state() == IBV_QPS_ERR) [[unlikely]]
    qp.flush_receives();
  return 0;
}

}  // namespace nullverbs
