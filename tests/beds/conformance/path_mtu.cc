// SPDX-License-Identifier: Apache-2.0
// Ends with different path MTUs. Every packet of a message but the last must be full, by the MTU of
// each end. So only messages that fit in one packet at both ends arrive.
#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

Pair pair_of(const Lab& lab, ibv_mtu ours, ibv_mtu theirs) {
  PairPlan plan;
  plan.a.mtu = ours;
  plan.b.mtu = theirs;
  return Pair(lab, plan);
}

std::string write(Lab& lab, ibv_mtu ours, ibv_mtu theirs, std::size_t bytes) {
  const Pair pair = pair_of(lab, ours, theirs);
  const Region& target = pair.b.memory;
  return run(pair.a, Work::write({pair.a.memory.piece(0, bytes)}, target.address(), target.rkey()));
}

std::string read(Lab& lab, ibv_mtu ours, ibv_mtu theirs) {
  Pair pair = pair_of(lab, ours, theirs);
  Region& source = pair.b.memory;
  source.fill(0, 10000, 1);
  const Work work = Work::read({pair.a.memory.piece(0, 10000)}, source.address(), source.rkey());
  const std::string status = run(pair.a, work);
  return pair.a.memory.has_pattern(0, 10000, 1) ? status + ", bytes there" : status;
}

}  // namespace

void add_path_mtu(Catalogue& all) {
  const auto of = [](ibv_mtu ours, ibv_mtu theirs, std::size_t bytes) {
    return [=](Lab& lab) { return write(lab, ours, theirs, bytes); };
  };
  const char* no = "REM_INV_REQ_ERR";
  const Catalogue ours = {
      {"path_mtu.smaller.one_packet", "SUCCESS", of(IBV_MTU_256, IBV_MTU_1024, 256)},
      {"path_mtu.smaller.several_packets", no, of(IBV_MTU_256, IBV_MTU_1024, 257)},
      {"path_mtu.larger.one_packet", "SUCCESS", of(IBV_MTU_1024, IBV_MTU_256, 256)},
      {"path_mtu.larger.one_of_ours", no, of(IBV_MTU_1024, IBV_MTU_256, 1000)},
      {"path_mtu.larger.several_packets", no, of(IBV_MTU_1024, IBV_MTU_256, 10000)},
      {"path_mtu.smaller.read", kOpen,
       [](Lab& lab) { return read(lab, IBV_MTU_256, IBV_MTU_1024); }},
      {"path_mtu.larger.read", kOpen,
       [](Lab& lab) { return read(lab, IBV_MTU_1024, IBV_MTU_256); }},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
