// SPDX-License-Identifier: Apache-2.0
// RDMA READ.
#include <algorithm>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

constexpr std::size_t kMiB = 1 << 20;

std::string read_from(Lab& lab, std::int64_t offset, std::size_t bytes, const PairPlan& plan = {}) {
  Pair pair(lab, plan);
  Region& own = pair.a.memory;
  Region& source = pair.b.memory;
  const bool inside = offset >= 0 && static_cast<std::size_t>(offset) + bytes <= source.size();
  if (inside) source.fill(static_cast<std::size_t>(offset), bytes, 1);
  const std::uint64_t from = source.address() + static_cast<std::uint64_t>(offset);
  std::string status = run(pair.a, Work::read({own.piece(0, bytes)}, from, source.rkey()));
  if (status != "SUCCESS") return status;
  return own.has_pattern(0, bytes, 1) ? "SUCCESS, bytes there" : "SUCCESS, bytes wrong";
}

std::int64_t end_of(std::size_t bytes) {
  return static_cast<std::int64_t>(EndPlan{}.bytes - bytes);
}

std::string one_mebibyte(Lab& lab) {
  PairPlan plan;
  plan.a.bytes = plan.b.bytes = kMiB;
  return read_from(lab, 0, kMiB, plan);
}

std::string without_memory_right(Lab& lab) {
  PairPlan plan;
  plan.b.memory_rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  return read_from(lab, 0, 8, plan);
}

std::string without_qp_right(Lab& lab) {
  PairPlan plan;
  plan.b.qp_rights = IBV_ACCESS_REMOTE_WRITE;
  return read_from(lab, 0, 8, plan);
}

std::string without_local_write(Lab& lab) {
  PairPlan plan;
  plan.a.memory_rights = 0;
  return read_from(lab, 0, 8, plan);
}

std::string no_reads_out(Lab& lab) {
  PairPlan plan;
  plan.link = impatient();
  plan.link.reads_out = 0;
  return read_from(lab, 0, 8, plan);
}

std::string no_reads_in(Lab& lab) {
  PairPlan plan;
  plan.link = impatient();
  plan.link.reads_in = 0;
  return read_from(lab, 0, 8, plan);
}

std::string local_past_end(Lab& lab) {
  const Pair pair(lab);
  const Region& own = pair.a.memory;
  const Region& source = pair.b.memory;
  const ibv_sge piece = own.piece(own.size() - 7, 8);
  return run(pair.a, Work::read({piece}, source.address(), source.rkey()));
}

std::string zero_length(Lab& lab, std::uint32_t key_error) {
  const Pair pair(lab);
  const Region& source = pair.b.memory;
  return run(pair.a, Work::read({}, source.address(), source.rkey() ^ key_error));
}

std::string several_pieces(Lab& lab) {
  Pair pair(lab);
  Region& own = pair.a.memory;
  Region& source = pair.b.memory;
  source.fill(50, 100, 2);
  const Work work = Work::read({own.piece(5000, 10), own.piece(4001, 50), own.piece(9003, 40)},
                               source.address(50), source.rkey());
  const std::string status = run(pair.a, work);
  std::byte* bytes = own.data();
  std::copy(bytes + 5000, bytes + 5010, bytes);
  std::copy(bytes + 4001, bytes + 4051, bytes + 10);
  std::copy(bytes + 9003, bytes + 9043, bytes + 60);
  return own.has_pattern(0, 100, 2) ? status + ", bytes there" : status;
}

std::string behind_a_write(Lab& lab) {
  Pair pair(lab);
  Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  own.fill(0, 8192, 3);
  const Work write = Work::write({own.piece(0, 8192)}, target.address(), target.rkey());
  must_accept(post(pair.a, write.quiet()), "ibv_post_send");
  const std::string status =
      run(pair.a, Work::read({own.piece(16384, 8192)}, target.address(), target.rkey()));
  return own.has_pattern(16384, 8192, 3) ? status + ", what was written"
                                         : status + ", what was before";
}

// A send with the fence flag starts after earlier READs, so that it sends the data that was read.
std::string fence(Lab& lab) {
  Pair pair(lab);
  Region& own = pair.a.memory;
  Region& other = pair.b.memory;
  constexpr std::size_t kBytes = 32 << 10;
  other.fill(0, kBytes, 4);
  must_accept(post_receive(pair.b, {other.piece(kBytes, kBytes)}), "ibv_post_recv");
  const Work read = Work::read({own.piece(0, kBytes)}, other.address(), other.rkey());
  must_accept(post(pair.a, read.quiet()), "ibv_post_send");
  const Work send = Work::send({own.piece(0, kBytes)});
  must_accept(post(pair.a, send.with_flags(IBV_SEND_FENCE)), "ibv_post_send");
  const std::string status = outcome(pair.b.receives);
  return other.has_pattern(kBytes, kBytes, 4) ? status + ", what was read"
                                              : status + ", other bytes";
}

std::string inlined(Lab& lab) {
  PairPlan plan;
  plan.a.cap.max_inline_data = 64;
  const Pair pair(lab, plan);
  const Region& source = pair.b.memory;
  const Work work = Work::read({pair.a.memory.piece(0, 8)}, source.address(), source.rkey());
  const int answer = post(pair.a, work.with_flags(IBV_SEND_INLINE));
  return answer != 0 ? verdict(answer) : outcome(pair.a.sends);
}

// More READs are posted than may be outstanding; the others wait.
std::string many_reads(Lab& lab, std::uint8_t out) {
  PairPlan plan;
  plan.link.reads_out = out;
  const Pair pair(lab, plan);
  const Region& own = pair.a.memory;
  const Region& source = pair.b.memory;
  for (std::size_t i = 0; i < 8; ++i) {
    const Work work = Work::read({own.piece(i * 64, 64)}, source.address(), source.rkey());
    must_accept(post(pair.a, work), "ibv_post_send");
  }
  const auto completions = next_many(pair.a.sends, 8);
  for (const ibv_wc& completion : completions) {
    if (completion.status != IBV_WC_SUCCESS) return word(completion.status);
  }
  return completions.size() == 8 ? "all complete" : "some are missing";
}

}  // namespace

void add_read(Catalogue& all) {
  const char* fine = "SUCCESS, bytes there";
  const auto from = [](std::int64_t offset, std::size_t bytes) {
    return [=](Lab& lab) { return read_from(lab, offset, bytes); };
  };
  const Catalogue ours = {
      {"read.bounds.whole_region", fine, from(0, EndPlan{}.bytes)},
      {"read.bounds.one_byte_past_end", "REM_ACCESS_ERR", from(end_of(8) + 1, 8)},
      {"read.bounds.one_byte_before_start", "REM_ACCESS_ERR", from(-1, 8)},
      {"read.bounds.local_one_byte_past_end", "LOC_PROT_ERR", local_past_end},
      {"read.size.zero", "SUCCESS", [](Lab& lab) { return zero_length(lab, 0); }},
      {"read.size.zero_bad_key", "SUCCESS", [](Lab& lab) { return zero_length(lab, 0x5a5a5a5a); }},
      {"read.size.one_byte", fine, from(77, 1)},
      {"read.size.beyond_mtu", fine, from(3, 3 * 4096 + 1)},
      {"read.size.one_mebibyte", fine, one_mebibyte},
      {"read.several_pieces", fine, several_pieces},
      {"read.right.not_of_memory", "REM_ACCESS_ERR", without_memory_right},
      {"read.right.not_of_qp", "REM_INV_REQ_ERR", without_qp_right},
      {"read.right.no_local_write", "LOC_PROT_ERR", without_local_write},
      {"read.none_may_be_out", kOpen, no_reads_out},
      {"read.none_is_served", "REM_INV_REQ_ERR", no_reads_in},
      {"read.more_than_may_be_out", "all complete", [](Lab& lab) { return many_reads(lab, 1); }},
      // The target accepts one at a time. It may refuse the others, or be fast enough to serve
      // them.
      {"read.more_out_than_served", kOpen, [](Lab& lab) { return many_reads(lab, 8); }},
      {"read.behind_a_write", "SUCCESS, what was written", behind_a_write},
      {"read.fence_holds_the_next", "SUCCESS, what was read", fence},
      {"read.inline", "refused EINVAL", inlined},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
