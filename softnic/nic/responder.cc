// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/responder.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "softnic/fabric/events.h"
#include "softnic/nic/completion_ring.h"
#include "softnic/nic/mr.h"
#include "softnic/nic/payload.h"
#include "softnic/nic/send_queue.h"
#include "softnic/nic/taken_receive.h"
#include "softnic/nic/timers.h"

namespace softnic {
namespace {

using Verdict = Answer::Verdict;

bool is_send(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}
bool has_imm(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

// Executes one request at one target queue pair.
class Responder {
 public:
  Responder(Runtime& runtime, const PeerRoute& route, std::uint32_t target_qpn,
            const Request& request, const Pieces& ours) noexcept
      : runtime_(runtime),
        peer_(route.peer()),
        arena_(peer_.arena()),
        qp_(route.qp()),
        resets_(route.resets()),
        qp_index_(qpn_index(target_qpn)),
        qpn_(target_qpn),
        request_(request),
        ours_(ours),
        receive_(runtime, {arena_, peer_.slot()}, qp_, target_qpn) {}

  Answer answer() {
    if (!accept_connection()) return {Verdict::kNoAnswer};
    if (!has_matching_packets()) {
      return refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    if (is_send(request_.opcode)) return take_send();
    if (is_atomic(request_.opcode)) return serve_atomic();
    return request_.opcode == IBV_WR_RDMA_READ ? serve_read() : take_write();
  }

 private:
  bool is_last() const noexcept { return request_.offset + request_.bytes == request_.length; }
  // If the path MTUs of the two ends differ, only messages of one packet are understood.
  bool has_matching_packets() const noexcept {
    return request_.path_mtu == qp_.path_mtu ||
           request_.length <= std::min(request_.path_mtu, qp_.path_mtu);
  }
  bool is_consuming_receive() const noexcept {
    return is_send(request_.opcode) || (request_.opcode == IBV_WR_RDMA_WRITE_WITH_IMM && is_last());
  }
  // The first message of a connection must have the sequence number that the target expects. From
  // then on the target accepts only that connection. After a reset it does not accept an old
  // connection, whose sequence numbers have advanced.
  bool accept_connection() {
    std::uint64_t bound = qp_.bound_to.load();
    if (bound == request_.connection) return true;
    if (bound != 0 || !request_.first || request_.sq_psn != qp_.rq_psn) return false;
    if (!qp_.bound_to.compare_exchange(bound, request_.connection)) return false;
    if (state_of(qp_.state.load()) == IBV_QPS_RTR) notify_owner(IBV_EVENT_COMM_EST);
    return true;
  }

  void notify_owner(ibv_event_type type) {
    send_event(runtime_.fabric(), EventPipe{qp_.device, peer_.slot(), qp_.event_number},
               EventRecord{type, qp_index_, qp_.serial});
  }

  // `breaking` is set first, so that the owner can complete the move if this process dies.
  void move_target_to_error() {
    qp_.breaking.store(1);
    arena_.header().break_count.fetch_add(1);
    // Only this connection of the QP: if the owner has reset it, the new one must not be affected.
    std::uint64_t word = qp_.state.load();
    while (word >> 8 == resets_ && can_receive(state_of(word)) &&
           !qp_.state.compare_exchange(word, state_word(resets_, IBV_QPS_ERR))) {
    }
  }

  Answer refuse(ibv_wc_status status, ibv_event_type event) {
    move_target_to_error();
    notify_owner(event);
    return {Verdict::kRefused, status};
  }

  // No copy was made, which would have shown that the process is dead, so this checks it.
  Answer not_ready() {
    if (!peer_.is_alive()) return {Verdict::kNoAnswer};
    return {Verdict::kNotReady, IBV_WC_SUCCESS, rnr_wait_ns(qp_.min_rnr_timer.load())};
  }

  // Completes the receive of the message with success or an error.
  void complete_receive(ibv_wc_status status) {
    CqeRecord entry = {};
    entry.qp_index = qp_index_;
    entry.status = status;
    entry.opcode = is_send(request_.opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
    entry.byte_len = static_cast<std::uint32_t>(request_.length);
    entry.qp_num = qpn_;
    entry.solicited = request_.solicited ? 1 : 0;
    if (has_imm(request_.opcode)) {
      entry.imm_data = request_.imm_data;
      entry.wc_flags = IBV_WC_WITH_IMM;
    }
    receive_.complete(entry);
  }

  Answer take_write() {
    if ((qp_.access.load() & IBV_ACCESS_REMOTE_WRITE) == 0) {
      return refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    MemoryPieces theirs;
    if (!find_remote(IBV_ACCESS_REMOTE_WRITE, theirs)) {
      return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    if (is_consuming_receive() && receive_.find() == nullptr) return not_ready();
    const Answer placed = place(theirs);
    if (placed.verdict == Verdict::kPlaced && is_consuming_receive()) {
      complete_receive(IBV_WC_SUCCESS);
    }
    return placed;
  }

  Answer serve_read() {
    if ((qp_.access.load() & IBV_ACCESS_REMOTE_READ) == 0 || qp_.max_dest_rd_atomic == 0) {
      return refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    MemoryPieces theirs;
    if (!find_remote(IBV_ACCESS_REMOTE_READ, theirs)) {
      return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    return place(theirs);
  }

  Answer serve_atomic() {
    const bool allowed = (qp_.access.load() & IBV_ACCESS_REMOTE_ATOMIC) != 0;
    if (!allowed || qp_.max_dest_rd_atomic == 0 || request_.remote_addr % request_.length != 0) {
      return refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    MemoryPieces theirs;
    if (!find_remote(IBV_ACCESS_REMOTE_ATOMIC, theirs)) {
      return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    return place(theirs);
  }

  Answer take_send() {
    ReceiveRecord* const receive = receive_.find();
    if (receive == nullptr) return not_ready();
    const SgeRecord* sges = Arena::sges(*receive);
    std::uint64_t room = 0;
    MemoryPieces theirs;
    Window window(request_.offset, request_.bytes, theirs.pieces);
    for (std::uint32_t i = 0; i < receive->sge_count; ++i) {
      const Translation sge = translate(arena_, peer_.slot(), sges[i].lkey, receive_.pd(),
                                        sges[i].addr, sges[i].length, IBV_ACCESS_LOCAL_WRITE);
      // Only entries that the message reaches are checked.
      if (!sge.allowed && room < request_.length && sges[i].length != 0) {
        return fail_receive(IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
      }
      theirs.add(window, sge, sges[i].length);
      room += sges[i].length;
    }
    if (room < request_.length) return fail_receive(IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
    const Answer placed = place(theirs);
    if (placed.verdict == Verdict::kPlaced && is_last()) complete_receive(IBV_WC_SUCCESS);
    return placed;
  }

  Answer fail_receive(ibv_wc_status here, ibv_wc_status reported) {
    complete_receive(here);
    move_target_to_error();
    return {Verdict::kRefused, reported};
  }

  // A message without bytes accesses no memory, so its key is not checked.
  bool find_remote(std::uint32_t access, MemoryPieces& theirs) const noexcept {
    if (request_.length == 0) return true;
    const Translation range = translate(arena_, peer_.slot(), request_.rkey, qp_.pd,
                                        request_.remote_addr, request_.length, access);
    if (!range.allowed) return false;
    Window window(request_.offset, request_.bytes, theirs.pieces);
    theirs.add(window, range, request_.length);
    return true;
  }

  Peer::Copied move(const MemoryPieces& theirs) {
    Payload payload(runtime_, peer_);
    const bool corrupt = request_.corrupt && is_last();
    if (is_atomic(request_.opcode)) {
      const bool compares = request_.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
      return payload.operate(ours_, theirs, {compares, request_.compare_add, request_.swap});
    }
    return request_.opcode == IBV_WR_RDMA_READ
               ? payload.read(ours_, theirs, request_.bytes, corrupt)
               : payload.write(ours_, theirs, request_.bytes, corrupt);
  }

  Answer place(const MemoryPieces& theirs) {
    if (request_.bytes == 0 || request_.discard)
      return {peer_.is_alive() ? Verdict::kPlaced : Verdict::kNoAnswer};
    switch (move(theirs)) {
      case Peer::Copied::kDone: return {Verdict::kPlaced};
      case Peer::Copied::kGone: return {Verdict::kNoAnswer};
      case Peer::Copied::kFault: break;
    }
    // A registered page was unmapped. A NIC would go on using the pinned page; softnic cannot.
    if (!is_own_memory_mapped()) return {Verdict::kLocalFault};
    return refuse(IBV_WC_REM_OP_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }

  bool is_own_memory_mapped() const {
    std::vector<std::byte> scratch(request_.bytes);
    const iovec to = {scratch.data(), scratch.size()};
    return ::process_vm_readv(::getpid(), &to, 1, ours_.piece.data(), ours_.count, 0) ==
           static_cast<ssize_t>(request_.bytes);
  }

  Runtime& runtime_;
  Peer& peer_;
  const Arena& arena_;
  QpRecord& qp_;
  const std::uint64_t resets_;
  const std::uint32_t qp_index_;
  const std::uint32_t qpn_;
  const Request& request_;
  const Pieces& ours_;
  TakenReceive receive_;
};

}  // namespace

Answer respond(Runtime& runtime, const PeerRoute& route, std::uint32_t target_qpn,
               const Request& request, const Pieces& ours) {
  return Responder(runtime, route, target_qpn, request, ours).answer();
}

}  // namespace softnic
