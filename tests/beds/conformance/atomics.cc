// SPDX-License-Identifier: Apache-2.0
// Atomic operations on eight bytes of the peer's memory.
#include <cstring>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

constexpr unsigned kAtomicRights = kAllRights | IBV_ACCESS_REMOTE_ATOMIC;

PairPlan atomic_plan() {
  PairPlan plan;
  plan.b.memory_rights = kAtomicRights;
  plan.b.qp_rights = kRemoteRights | IBV_ACCESS_REMOTE_ATOMIC;
  return plan;
}

std::uint64_t value_at(const Region& memory, std::size_t offset) {
  std::uint64_t value = 0;
  std::memcpy(&value, memory.data() + offset, sizeof value);
  return value;
}

void put(const Region& memory, std::size_t offset, std::uint64_t value) {
  std::memcpy(memory.data() + offset, &value, sizeof value);
}

std::string fetch_add(Lab& lab) {
  const Pair pair(lab, atomic_plan());
  const Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  put(target, 16, 1000);
  const Work work = Work::fetch_add(own.piece(8, 8), target.address(16), target.rkey(), 23);
  std::string status = run(pair.a, work);
  if (status != "SUCCESS") return status;
  return all_of("SUCCESS, sum there, value before here",
                {{value_at(target, 16) == 1023, "no sum"},
                 {value_at(own, 8) == 1000, "not the value before"}});
}

std::string compare_swap(Lab& lab, std::uint64_t there, std::uint64_t expected_after) {
  const Pair pair(lab, atomic_plan());
  const Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  put(target, 16, there);
  const Work work = Work::compare_swap(own.piece(8, 8), target.address(16), target.rkey(), 5, 77);
  std::string status = run(pair.a, work);
  if (status != "SUCCESS") return status;
  const bool right = value_at(target, 16) == expected_after && value_at(own, 8) == there;
  return right ? status + (expected_after == 77 ? ", swapped" : ", left alone") : "wrong values";
}

std::string opcode(Lab& lab, bool adds) {
  const Pair pair(lab, atomic_plan());
  const Region& target = pair.b.memory;
  const ibv_sge before = pair.a.memory.piece(0, 8);
  const Work work = adds ? Work::fetch_add(before, target.address(), target.rkey(), 1)
                         : Work::compare_swap(before, target.address(), target.rkey(), 0, 1);
  must_accept(post(pair.a, work), "ibv_post_send");
  const auto completion = next(pair.a.sends);
  if (!completion) return "nothing";
  return completion->status == IBV_WC_SUCCESS ? word(completion->opcode) : word(completion->status);
}

std::string add_with(Lab& lab, const PairPlan& plan, std::uint64_t offset) {
  const Pair pair(lab, plan);
  const Region& target = pair.b.memory;
  return run(pair.a,
             Work::fetch_add(pair.a.memory.piece(0, 8), target.address(offset), target.rkey(), 1));
}

std::string without_memory_right(Lab& lab) {
  PairPlan plan = atomic_plan();
  plan.b.memory_rights = kAllRights;
  return add_with(lab, plan, 0);
}

std::string without_qp_right(Lab& lab) {
  PairPlan plan = atomic_plan();
  plan.b.qp_rights = kRemoteRights;
  return add_with(lab, plan, 0);
}

std::string without_local_write(Lab& lab) {
  PairPlan plan = atomic_plan();
  plan.a.memory_rights = 0;
  return add_with(lab, plan, 0);
}

std::string none_out(Lab& lab) {
  PairPlan plan = atomic_plan();
  plan.link = impatient();
  plan.link.reads_out = 0;
  return add_with(lab, plan, 0);
}

std::string none_served(Lab& lab) {
  PairPlan plan = atomic_plan();
  plan.link = impatient();
  plan.link.reads_in = 0;
  return add_with(lab, plan, 0);
}

std::string four_bytes(Lab& lab) {
  const Pair pair(lab, atomic_plan());
  const Region& target = pair.b.memory;
  return run(pair.a,
             Work::fetch_add(pair.a.memory.piece(0, 4), target.address(), target.rkey(), 1));
}

std::string several(Lab& lab) {
  const Pair pair(lab, atomic_plan());
  const Region& target = pair.b.memory;
  for (std::size_t i = 0; i < 8; ++i) {
    must_accept(post(pair.a, Work::fetch_add(pair.a.memory.piece(i * 8, 8), target.address(),
                                             target.rkey(), 1)),
                "ibv_post_send");
  }
  const auto completions = next_many(pair.a.sends, 8);
  if (completions.size() != 8) return statuses(completions);
  for (std::size_t i = 0; i < 8; ++i) {
    if (completions[i].status != IBV_WC_SUCCESS) return word(completions[i].status);
    if (value_at(pair.a.memory, i * 8) != i) return "out of order";
  }
  return value_at(target, 0) == 8 ? "each once, in order" : "some lost";
}

std::string behind_a_write(Lab& lab) {
  const Pair pair(lab, atomic_plan());
  const Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  put(own, 0, 40);
  const Work write = Work::write({own.piece(0, 8)}, target.address(), target.rkey());
  must_accept(post(pair.a, write.quiet()), "ibv_post_send");
  std::string status =
      run(pair.a, Work::fetch_add(own.piece(8, 8), target.address(), target.rkey(), 2));
  if (status != "SUCCESS") return status;
  return value_at(target, 0) == 42 ? "sees what was written" : "sees what was before";
}

}  // namespace

void add_atomics(Catalogue& all) {
  const auto at = [](std::uint64_t offset) {
    return [=](Lab& lab) { return add_with(lab, atomic_plan(), offset); };
  };
  const Catalogue ours = {
      {"atomic.fetch_add", "SUCCESS, sum there, value before here", fetch_add},
      {"atomic.compare_swap.equal", "SUCCESS, swapped",
       [](Lab& lab) { return compare_swap(lab, 5, 77); }},
      {"atomic.compare_swap.different", "SUCCESS, left alone",
       [](Lab& lab) { return compare_swap(lab, 6, 6); }},
      {"atomic.opcode.fetch_add", "FETCH_ADD", [](Lab& lab) { return opcode(lab, true); }},
      {"atomic.opcode.compare_swap", "COMP_SWAP", [](Lab& lab) { return opcode(lab, false); }},
      {"atomic.misaligned", "REM_INV_REQ_ERR", at(4)},
      {"atomic.bounds.last", "SUCCESS", at(EndPlan{}.bytes - 8)},
      {"atomic.bounds.past_end", "REM_ACCESS_ERR", at(EndPlan{}.bytes)},
      {"atomic.right.not_of_memory", "REM_ACCESS_ERR", without_memory_right},
      {"atomic.right.not_of_qp", "REM_INV_REQ_ERR", without_qp_right},
      {"atomic.right.no_local_write", "LOC_PROT_ERR", without_local_write},
      {"atomic.none_may_be_out", kOpen, none_out},
      {"atomic.none_is_served", "REM_INV_REQ_ERR", none_served},
      {"atomic.four_bytes", kOpen, four_bytes},
      {"atomic.several", "each once, in order", several},
      {"atomic.behind_a_write", "sees what was written", behind_a_write},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
