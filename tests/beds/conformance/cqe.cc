// SPDX-License-Identifier: Apache-2.0
// The fields of a completion: of a success all that apply, of a failure its identity and status.
#include <endian.h>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

constexpr std::uint64_t kId = 0x0123456789abcdef;  // all 64 bits are returned
constexpr std::uint64_t kReceiveId = 0xfedcba9876543210;
constexpr std::uint32_t kImm = 0xdeadbeef;
constexpr std::size_t kBytes = 100;

std::string sender_side(Lab& lab, Work (*make)(const Pair&), ibv_wc_opcode opcode, bool sized) {
  const Pair pair(lab);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 4096)}), "ibv_post_recv");
  must_accept(post(pair.a, make(pair).with_id(kId)), "ibv_post_send");
  const auto completion = next(pair.a.sends);
  if (!completion) return "nothing";
  if (completion->status != IBV_WC_SUCCESS) return word(completion->status);
  return all_of("as it should be", {{completion->wr_id == kId, "wr_id"},
                                    {completion->opcode == opcode, "opcode"},
                                    {completion->qp_num == pair.a.qp->qp_num, "qp_num"},
                                    {!sized || completion->byte_len == kBytes, "byte_len"}});
}

Work some_write(const Pair& pair) {
  return Work::write({pair.a.memory.piece(0, kBytes)}, pair.b.memory.address(),
                     pair.b.memory.rkey());
}
Work some_write_imm(const Pair& pair) {
  return Work::write_imm({pair.a.memory.piece(0, kBytes)}, pair.b.memory.address(),
                         pair.b.memory.rkey(), kImm);
}
Work some_read(const Pair& pair) {
  return Work::read({pair.a.memory.piece(0, kBytes)}, pair.b.memory.address(),
                    pair.b.memory.rkey());
}
Work some_send(const Pair& pair) { return Work::send({pair.a.memory.piece(0, kBytes)}); }
Work some_send_imm(const Pair& pair) {
  return Work::send_imm({pair.a.memory.piece(0, kBytes)}, kImm);
}

std::string receiver_side(Lab& lab, Work (*make)(const Pair&), ibv_wc_opcode opcode, bool imm) {
  const Pair pair(lab);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 4096)}, kReceiveId), "ibv_post_recv");
  must_accept(post(pair.a, make(pair)), "ibv_post_send");
  const auto completion = next(pair.b.receives);
  if (!completion) return "nothing";
  if (completion->status != IBV_WC_SUCCESS) return word(completion->status);
  const bool says_imm = (completion->wc_flags & IBV_WC_WITH_IMM) != 0;
  return all_of("as it should be", {{completion->wr_id == kReceiveId, "wr_id"},
                                    {completion->opcode == opcode, "opcode"},
                                    {completion->qp_num == pair.b.qp->qp_num, "qp_num"},
                                    {completion->byte_len == kBytes, "byte_len"},
                                    {says_imm == imm, "IBV_WC_WITH_IMM"},
                                    {!imm || completion->imm_data == htobe32(kImm), "imm_data"}});
}

// src_qp is defined only for datagrams; on a connection devices differ.
std::string source_qp(Lab& lab) {
  const Pair pair(lab);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 4096)}), "ibv_post_recv");
  must_accept(post(pair.a, some_send(pair)), "ibv_post_send");
  const auto completion = next(pair.b.receives);
  if (!completion) return "nothing";
  return completion->src_qp == pair.a.qp->qp_num ? "the sender's number" : "another number";
}

std::string of_a_failure(Lab& lab) {
  const Pair pair(lab);
  const Work work = Work::write({pair.a.memory.piece(0, 8)}, pair.b.memory.address(),
                                pair.b.memory.rkey() ^ 0x5a5a5a5a);
  must_accept(post(pair.a, work.quiet().with_id(kId)), "ibv_post_send");
  const auto completion = next(pair.a.sends);
  if (!completion) return "nothing";
  return all_of("as it should be", {{completion->status == IBV_WC_REM_ACCESS_ERR, "status"},
                                    {completion->wr_id == kId, "wr_id"},
                                    {completion->qp_num == pair.a.qp->qp_num, "qp_num"}});
}

// Only wr_id, status, qp_num and vendor_err are valid.
std::string rest_of_a_failure(Lab& lab) {
  const Pair pair(lab);
  const Work work = Work::write({pair.a.memory.piece(0, 8)}, pair.b.memory.address(),
                                pair.b.memory.rkey() ^ 0x5a5a5a5a);
  must_accept(post(pair.a, work), "ibv_post_send");
  const auto completion = next(pair.a.sends);
  if (!completion) return "nothing";
  return completion->byte_len == kUntouched ? "left as it was" : "written over";
}

std::string of_a_flushed_receive(Lab& lab) {
  const Pair pair(lab);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 8)}, kReceiveId), "ibv_post_recv");
  must_accept(move_to(pair.b, IBV_QPS_ERR), "to ERR");
  const auto completion = next(pair.b.receives);
  if (!completion) return "nothing";
  return all_of("as it should be", {{completion->status == IBV_WC_WR_FLUSH_ERR, "status"},
                                    {completion->wr_id == kReceiveId, "wr_id"},
                                    {completion->qp_num == pair.b.qp->qp_num, "qp_num"}});
}

}  // namespace

void add_cqe(Catalogue& all) {
  const char* fine = "as it should be";
  const auto sent = [](Work (*make)(const Pair&), ibv_wc_opcode opcode, bool sized = false) {
    return [=](Lab& lab) { return sender_side(lab, make, opcode, sized); };
  };
  const auto got = [](Work (*make)(const Pair&), ibv_wc_opcode opcode, bool imm) {
    return [=](Lab& lab) { return receiver_side(lab, make, opcode, imm); };
  };
  const Catalogue ours = {
      {"cqe.write", fine, sent(some_write, IBV_WC_RDMA_WRITE)},
      {"cqe.write_imm", fine, sent(some_write_imm, IBV_WC_RDMA_WRITE)},
      {"cqe.read", fine, sent(some_read, IBV_WC_RDMA_READ)},
      {"cqe.read.byte_len", fine, sent(some_read, IBV_WC_RDMA_READ, true)},
      {"cqe.send", fine, sent(some_send, IBV_WC_SEND)},
      {"cqe.send_imm", fine, sent(some_send_imm, IBV_WC_SEND)},
      {"cqe.receive", fine, got(some_send, IBV_WC_RECV, false)},
      {"cqe.receive_imm", fine, got(some_send_imm, IBV_WC_RECV, true)},
      {"cqe.receive_of_write_imm", fine, got(some_write_imm, IBV_WC_RECV_RDMA_WITH_IMM, true)},
      {"cqe.receive.src_qp", kOpen, source_qp},
      {"cqe.failure", fine, of_a_failure},
      {"cqe.failure.rest", kOpen, rest_of_a_failure},
      {"cqe.flushed_receive", fine, of_a_flushed_receive},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
