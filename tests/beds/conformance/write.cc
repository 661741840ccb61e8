// SPDX-License-Identifier: Apache-2.0
// RDMA WRITE, with and without immediate.
#include <algorithm>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

constexpr std::size_t kMiB = 1 << 20;

// Writes `bytes` from the start of the local memory to `offset` of the peer's, which may be
// outside.
std::string write_at(Lab& lab, std::int64_t offset, std::size_t bytes, const PairPlan& plan = {}) {
  Pair pair(lab, plan);
  Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  own.fill(0, bytes, 1);
  const std::uint64_t to = target.address() + static_cast<std::uint64_t>(offset);
  std::string status = run(pair.a, Work::write({own.piece(0, bytes)}, to, target.rkey()));
  if (status != "SUCCESS") return status;
  const bool there = target.has_pattern(static_cast<std::size_t>(offset), bytes, 1);
  return there ? "SUCCESS, bytes there" : "SUCCESS, bytes wrong";
}

std::int64_t end_of(std::size_t bytes) {
  return static_cast<std::int64_t>(EndPlan{}.bytes - bytes);
}

std::string one_mebibyte(Lab& lab) {
  PairPlan plan;
  plan.a.bytes = plan.b.bytes = kMiB;
  return write_at(lab, 0, kMiB, plan);
}

std::string beyond_mtu(Lab& lab) { return write_at(lab, 3, 3 * 4096 + 1); }

std::string wraps_around(Lab& lab) {
  const Pair pair(lab);
  const Work work =
      Work::write({pair.a.memory.piece(0, 16)}, ~std::uint64_t{0} - 7, pair.b.memory.rkey());
  return run(pair.a, work);
}

std::string no_pieces(Lab& lab, std::uint32_t key_error) {
  const Pair pair(lab);
  const Region& target = pair.b.memory;
  return run(pair.a, Work::write({}, target.address(), target.rkey() ^ key_error));
}

std::string several_pieces(Lab& lab) {
  Pair pair(lab);
  Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  own.fill(0, 100, 2);
  // The pattern has four parts, which are in memory in another order than they are sent.
  std::byte* bytes = own.data();
  std::copy(bytes + 0, bytes + 10, bytes + 5000);
  std::copy(bytes + 10, bytes + 11, bytes + 4001);
  std::copy(bytes + 11, bytes + 60, bytes + 9003);
  std::copy(bytes + 60, bytes + 100, bytes + 3000);
  const Work work = Work::write(
      {own.piece(5000, 10), own.piece(4001, 1), own.piece(9003, 49), own.piece(3000, 40)},
      target.address(50), target.rkey());
  const std::string status = run(pair.a, work);
  return target.has_pattern(50, 100, 2) ? status + ", bytes there" : status;
}

// An SGE without bytes between others. Its key is not checked.
std::string empty_piece(Lab& lab, std::uint32_t key_error) {
  const Pair pair(lab);
  const Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  ibv_sge nothing = own.piece(100, 0);
  nothing.lkey ^= key_error;
  return run(pair.a, Work::write({own.piece(0, 8), nothing, own.piece(8, 8)}, target.address(),
                                 target.rkey()));
}

std::string local_past_end(Lab& lab) {
  const Pair pair(lab);
  const Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  const ibv_sge piece = own.piece(own.size() - 7, 8);
  return run(pair.a, Work::write({piece}, target.address(), target.rkey()));
}

std::string without_memory_right(Lab& lab) {
  PairPlan plan;
  plan.b.memory_rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  return write_at(lab, 0, 8, plan);
}

std::string without_qp_right(Lab& lab) {
  PairPlan plan;
  plan.b.qp_rights = IBV_ACCESS_REMOTE_READ;
  return write_at(lab, 0, 8, plan);
}

// Access rights are checked when the request arrives.
std::string right_taken_in_rts(Lab& lab) {
  const Pair pair(lab);
  ibv_qp_attr attr = {};
  attr.qp_access_flags = 0;
  must_accept(modify(pair.b, attr, IBV_QP_ACCESS_FLAGS), "to take the right");
  const Region& target = pair.b.memory;
  return run(pair.a, Work::write({pair.a.memory.piece(0, 8)}, target.address(), target.rkey()));
}

std::string refused_write_changes_nothing(Lab& lab) {
  PairPlan plan;
  plan.b.memory_rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  Pair pair(lab, plan);
  const Region& target = pair.b.memory;
  pair.a.memory.fill(0, 8192, 4);
  (void)run(pair.a, Work::write({pair.a.memory.piece(0, 8192)}, target.address(), target.rkey()));
  for (std::size_t i = 0; i < 8192; ++i) {
    if (target.data()[i] != std::byte{}) return "bytes there";
  }
  return "nothing changed";
}

// One byte past the end, and longer than the MTU, so that the first packets are within the region.
std::string long_past_end(Lab& lab) { return write_at(lab, end_of(16384) + 1, 16384); }

std::string later_write_wins(Lab& lab) {
  Pair pair(lab);
  Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  own.fill(0, 8192, 1);
  own.fill(8192, 8192, 2);
  const Work first = Work::write({own.piece(0, 8192)}, target.address(), target.rkey());
  const Work second = Work::write({own.piece(8192, 8192)}, target.address(), target.rkey());
  for (int i = 0; i < 3; ++i) must_accept(post(pair.a, first.quiet()), "ibv_post_send");
  const std::string status = run(pair.a, second);
  return target.has_pattern(0, 8192, 2) ? status + ", the later" : status + ", not the later";
}

std::string takes_no_receive(Lab& lab) {
  const Pair pair(lab);
  const Region& target = pair.b.memory;
  must_accept(post_receive(pair.b, {target.piece(0, 8)}), "ibv_post_recv");
  const Work work = Work::write({pair.a.memory.piece(0, 8)}, target.address(), target.rkey());
  const std::string status = run(pair.a, work);
  return next(pair.b.receives, kSilence) ? status + ", receive gone" : status;
}

// The immediate arrives after all bytes that were written before it.
std::string order_then_imm(Lab& lab) {
  PairPlan plan;
  plan.a.cap.max_send_wr = 64;
  Pair pair(lab, plan);
  Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  constexpr std::size_t kWrites = 16;
  constexpr std::size_t kEach = 4000;
  must_accept(post_receive(pair.b, {}), "ibv_post_recv");
  own.fill(0, kWrites * kEach, 5);
  for (std::size_t i = 0; i < kWrites; ++i) {
    const std::size_t at = i * kEach;
    const Work work = Work::write({own.piece(at, kEach)}, target.address(at), target.rkey());
    must_accept(post(pair.a, work.quiet()), "ibv_post_send");
  }
  must_accept(post(pair.a, Work::write_imm({}, 0, 0, 1)), "ibv_post_send");
  const std::string status = outcome(pair.b.receives);
  return target.has_pattern(0, kWrites * kEach, 5) ? status + ", bytes there" : status;
}

std::string imm_of_nothing(Lab& lab) {
  const Pair pair(lab);
  must_accept(post_receive(pair.b, {}), "ibv_post_recv");
  const Region& target = pair.b.memory;
  must_accept(post(pair.a, Work::write_imm({}, target.address(), target.rkey(), 9)),
              "ibv_post_send");
  const auto completion = next(pair.b.receives);
  if (!completion) return "nothing";
  return word(completion->status) + ", length " + std::to_string(completion->byte_len);
}

// The SGEs of the receive are not used: the data goes to the address of the write.
std::string imm_ignores_receive(Lab& lab) {
  const Pair pair(lab);
  ibv_sge nonsense = pair.b.memory.piece(0, 1);
  nonsense.lkey ^= 0x5a5a5a5a;
  must_accept(post_receive(pair.b, {nonsense}), "ibv_post_recv");
  const Region& target = pair.b.memory;
  const auto piece = pair.a.memory.piece(0, 100);
  must_accept(post(pair.a, Work::write_imm({piece}, target.address(), target.rkey(), 9)),
              "ibv_post_send");
  return outcome(pair.b.receives);
}

std::string imm_without_receive(Lab& lab) {
  PairPlan plan;
  plan.link.rnr_retry = 0;
  const Pair pair(lab, plan);
  const Region& target = pair.b.memory;
  const auto piece = pair.a.memory.piece(0, 8);
  return run(pair.a, Work::write_imm({piece}, target.address(), target.rkey(), 9));
}

std::string imm_with_bad_key(Lab& lab) {
  const Pair pair(lab);
  must_accept(post_receive(pair.b, {}), "ibv_post_recv");
  const Region& target = pair.b.memory;
  const auto piece = pair.a.memory.piece(0, 8);
  const std::uint32_t wrong = target.rkey() ^ 0x5a5a5a5a;
  const std::string status = run(pair.a, Work::write_imm({piece}, target.address(), wrong, 9));
  return status + ", receive " + outcome(pair.b.receives);
}

std::string inline_bytes_are_copied(Lab& lab) {
  PairPlan plan;
  plan.a.cap.max_inline_data = 64;
  plan.link.rnr_retry = 7;
  Pair pair(lab, plan);
  Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  // The send before it delays the write until the bytes have been overwritten.
  must_accept(post(pair.a, Work::send({own.piece(512, 8)}).quiet()), "ibv_post_send");
  own.fill(0, 64, 6);
  ibv_sge piece = own.piece(0, 64);
  piece.lkey = 0;  // needs no key
  const Work work = Work::write({piece}, target.address(), target.rkey());
  const int answer = post(pair.a, work.with_flags(IBV_SEND_INLINE));
  if (answer != 0) return verdict(answer);
  own.fill(0, 64, 7);
  must_accept(post_receive(pair.b, {target.piece(1024, 8)}), "ibv_post_recv");
  const std::string status = outcome(pair.a.sends);
  return target.has_pattern(0, 64, 6) ? status + ", bytes as posted" : status + ", other bytes";
}

std::string inline_too_long(Lab& lab) {
  const Pair pair(lab);
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  must_accept(::ibv_query_qp(pair.a.qp.get(), &attr, IBV_QP_CAP, &init), "ibv_query_qp");
  const Region& target = pair.b.memory;
  const auto piece = pair.a.memory.piece(0, attr.cap.max_inline_data + 1);
  const Work work = Work::write({piece}, target.address(), target.rkey());
  return verdict(post(pair.a, work.with_flags(IBV_SEND_INLINE)));
}

void add_imm(Catalogue& all) {
  const Catalogue ours = {
      {"write_imm.after_writes", "SUCCESS, bytes there", order_then_imm},
      {"write_imm.zero_length", "SUCCESS, length 0", imm_of_nothing},
      {"write_imm.ignores_pieces_of_receive", "SUCCESS", imm_ignores_receive},
      {"write_imm.without_receive", "RNR_RETRY_EXC_ERR", imm_without_receive},
      // The receive fails with its write, or is flushed after it.
      {"write_imm.bad_key",
       "REM_ACCESS_ERR, receive LOC_ACCESS_ERR|REM_ACCESS_ERR, receive WR_FLUSH_ERR",
       imm_with_bad_key},
      {"write.inline.copied_at_post", "SUCCESS, bytes as posted", inline_bytes_are_copied},
      {"write.inline.too_long", "refused EINVAL|refused ENOMEM", inline_too_long},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace

void add_write(Catalogue& all) {
  const char* fine = "SUCCESS, bytes there";
  const char* no = "REM_ACCESS_ERR";
  const auto at = [](std::int64_t offset, std::size_t bytes) {
    return [=](Lab& lab) { return write_at(lab, offset, bytes); };
  };
  const Catalogue ours = {
      {"write.bounds.whole_region", fine, at(0, EndPlan{}.bytes)},
      {"write.bounds.last_byte", fine, at(end_of(1), 1)},
      {"write.bounds.one_byte_past_end", no, at(end_of(8) + 1, 8)},
      {"write.bounds.one_byte_before_start", no, at(-1, 8)},
      {"write.bounds.right_behind_end", no, at(end_of(0), 1)},
      {"write.bounds.long_one_byte_past_end", no, long_past_end},
      {"write.bounds.wraps_around", no, wraps_around},
      {"write.bounds.local_one_byte_past_end", "LOC_PROT_ERR", local_past_end},
      {"write.size.zero", "SUCCESS", [](Lab& lab) { return no_pieces(lab, 0); }},
      {"write.size.zero_bad_key", "SUCCESS", [](Lab& lab) { return no_pieces(lab, 0x5a5a5a5a); }},
      {"write.size.one_byte", fine, at(77, 1)},
      {"write.size.beyond_mtu", fine, beyond_mtu},
      {"write.size.one_mebibyte", fine, one_mebibyte},
      {"write.several_pieces", fine, several_pieces},
      {"write.empty_piece", "SUCCESS", [](Lab& lab) { return empty_piece(lab, 0); }},
      {"write.empty_piece.bad_key", kOpen, [](Lab& lab) { return empty_piece(lab, 0x5a5a5a5a); }},
      {"write.right.not_of_memory", no, without_memory_right},
      {"write.right.not_of_qp", "REM_INV_REQ_ERR", without_qp_right},
      {"write.right.taken_in_RTS", "REM_INV_REQ_ERR", right_taken_in_rts},
      {"write.refused_changes_nothing", "nothing changed", refused_write_changes_nothing},
      {"write.order.later_wins", "SUCCESS, the later", later_write_wins},
      {"write.takes_no_receive", "SUCCESS", takes_no_receive},
  };
  all.insert(all.end(), ours.begin(), ours.end());
  add_imm(all);
}

}  // namespace conformance
