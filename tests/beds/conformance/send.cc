// SPDX-License-Identifier: Apache-2.0
// SEND and its receive; signaled and unsignaled work.
#include <algorithm>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

// Sends `bytes` into a receive with these SGEs, which are filled in order.
std::string send_into(Lab& lab, std::size_t bytes, const std::vector<std::size_t>& rooms,
                      const PairPlan& plan = {}) {
  Pair pair(lab, plan);
  Region& own = pair.a.memory;
  Region& target = pair.b.memory;
  std::vector<ibv_sge> pieces;
  pieces.reserve(rooms.size());
  for (const std::size_t room : rooms)
    pieces.push_back(target.piece(pieces.size() * 8192 + 100, room));
  must_accept(post_receive(pair.b, pieces), "ibv_post_recv");
  own.fill(0, bytes, 1);
  const auto sent = bytes == 0 ? std::vector<ibv_sge>{} : std::vector{own.piece(0, bytes)};
  const std::string sender = run(pair.a, Work::send(sent));
  const auto completion = next(pair.b.receives);
  if (!completion) return sender + ", receiver nothing";
  if (completion->status != IBV_WC_SUCCESS) {
    return sender + ", receiver " + word(completion->status);
  }
  std::vector<std::byte> got;
  for (const ibv_sge& piece : pieces) {
    const auto* from = reinterpret_cast<const std::byte*>(piece.addr);
    got.insert(got.end(), from, from + piece.length);
  }
  const bool same = std::equal(own.data(), own.data() + bytes, got.data());
  return all_of((sender + ", bytes there").c_str(),
                {{same, "bytes wrong"}, {completion->byte_len == bytes, "byte_len wrong"}});
}

std::string one_mebibyte(Lab& lab) {
  PairPlan plan;
  plan.a.bytes = plan.b.bytes = 2 << 20;
  return send_into(lab, 1 << 20, {1 << 20}, plan);
}

// It is not specified how much data a receive gets that is too small. Memory after it must not
// change.
std::string bytes_behind_small_receive(Lab& lab) {
  Pair pair(lab);
  Region& target = pair.b.memory;
  must_accept(post_receive(pair.b, {target.piece(0, 8)}), "ibv_post_recv");
  pair.a.memory.fill(0, 4096, 1);
  (void)run(pair.a, Work::send({pair.a.memory.piece(0, 4096)}));
  for (std::size_t i = 8; i < target.size(); ++i) {
    if (target.data()[i] != std::byte{}) return "bytes behind the receive";
  }
  return "none";
}

std::string in_order(Lab& lab) {
  Pair pair(lab);
  Region& own = pair.a.memory;
  Region& target = pair.b.memory;
  for (std::uint64_t i = 0; i < 8; ++i) {
    must_accept(post_receive(pair.b, {target.piece(i * 64, 64)}, i), "ibv_post_recv");
  }
  for (std::size_t i = 0; i < 8; ++i) {
    own.fill(i * 64, 64, static_cast<std::uint8_t>(i));
    must_accept(post(pair.a, Work::send({own.piece(i * 64, 64)})), "ibv_post_send");
  }
  const auto completions = next_many(pair.b.receives, 8);
  if (completions.size() != 8) return statuses(completions);
  for (std::size_t i = 0; i < 8; ++i) {
    if (completions[i].wr_id != i) return "receives out of order";
    if (!target.has_pattern(i * 64, 64, static_cast<std::uint8_t>(i))) return "bytes out of order";
  }
  return "in order";
}

std::string quiet_work(Lab& lab) {
  const Pair pair(lab);
  const Region& target = pair.b.memory;
  const Work work = Work::write({pair.a.memory.piece(0, 8)}, target.address(), target.rkey());
  for (int i = 0; i < 3; ++i) must_accept(post(pair.a, work.quiet()), "ibv_post_send");
  must_accept(post(pair.a, work.with_id(1)), "ibv_post_send");
  const auto completion = next(pair.a.sends);
  const bool only_last = completion && completion->wr_id == 1 && !next(pair.a.sends, kSilence);
  return only_last ? "only the signalled" : "others too";
}

std::string signal_all(Lab& lab) {
  PairPlan plan;
  plan.a.signal_all = true;
  const Pair pair(lab, plan);
  const Region& target = pair.b.memory;
  const Work work = Work::write({pair.a.memory.piece(0, 8)}, target.address(), target.rkey());
  for (int i = 0; i < 3; ++i) must_accept(post(pair.a, work.quiet()), "ibv_post_send");
  return std::to_string(next_many(pair.a.sends, 3).size()) + " of 3";
}

std::string solicited(Lab& lab) {
  const Pair pair(lab);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_recv");
  const Work work = Work::send({pair.a.memory.piece(0, 8)});
  must_accept(post(pair.a, work.with_flags(IBV_SEND_SOLICITED)), "ibv_post_send");
  return outcome(pair.b.receives);
}

std::string inlined(Lab& lab) {
  PairPlan plan;
  plan.a.cap.max_inline_data = 64;
  Pair pair(lab, plan);
  pair.a.memory.fill(0, 64, 1);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 64)}), "ibv_post_recv");
  ibv_sge first = pair.a.memory.piece(0, 10);
  ibv_sge second = pair.a.memory.piece(10, 54);
  first.lkey = second.lkey = 0;
  const int answer = post(pair.a, Work::send({first, second}).with_flags(IBV_SEND_INLINE));
  if (answer != 0) return verdict(answer);
  const std::string status = outcome(pair.b.receives);
  return pair.b.memory.has_pattern(0, 64, 1) ? status + ", bytes there" : status;
}

std::string to_rtr_only(Lab& lab) {
  const End a(lab.a);
  const End b(lab.b);
  raise(b, a, IBV_QPS_RTR);
  raise(a, b, IBV_QPS_RTS);
  must_accept(post_receive(b, {b.memory.piece(0, 8)}), "ibv_post_recv");
  return run(a, Work::send({a.memory.piece(0, 8)}));
}

std::string to_itself(Lab& lab) {
  const End end(lab.a);
  raise(end, end, IBV_QPS_RTS);
  must_accept(post_receive(end, {end.memory.piece(0, 8)}), "ibv_post_recv");
  return run(end, Work::send({end.memory.piece(100, 8)}));
}

}  // namespace

void add_send(Catalogue& all) {
  const char* fine = "SUCCESS, bytes there";
  const char* too_small = "REM_INV_REQ_ERR, receiver LOC_LEN_ERR";
  const auto into = [](std::size_t bytes, const std::vector<std::size_t>& rooms) {
    return [=](Lab& lab) { return send_into(lab, bytes, rooms); };
  };
  const Catalogue ours = {
      {"send.size.zero", fine, into(0, {8})},
      {"send.size.zero_no_pieces", fine, into(0, {})},
      {"send.size.one_byte", fine, into(1, {1})},
      {"send.size.smaller_than_receive", fine, into(100, {4096})},
      {"send.size.beyond_mtu", fine, into(3 * 4096 + 1, {3 * 4096 + 1})},
      {"send.size.one_mebibyte", fine, one_mebibyte},
      {"send.several_receive_pieces", fine, into(5000, {10, 1, 4000, 989})},
      {"send.receive_too_small", too_small, into(100, {99})},
      {"send.receive_too_small.pieces", too_small, into(100, {40, 59})},
      {"send.receive_too_small.none", too_small, into(1, {})},
      {"send.receive_too_small.beyond_mtu", too_small, into(8193, {8192})},
      {"send.receive_too_small.bytes_behind", "none", bytes_behind_small_receive},
      {"send.order", "in order", in_order},
      {"send.signalled.only", "only the signalled", quiet_work},
      {"send.signalled.all", "3 of 3", signal_all},
      {"send.solicited", "SUCCESS", solicited},
      {"send.inline", fine, inlined},
      {"send.to_RTR", "SUCCESS", to_rtr_only},
      {"send.to_itself", "SUCCESS", to_itself},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
