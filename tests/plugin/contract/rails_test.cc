// SPDX-License-Identifier: Apache-2.0
//
// BEELINE_RAILS: the plugin itself merges NICs that are near each other, for all versions of the
// table. These tests need a fabric with eight NICs on each host.
#include <cstdlib>
#include <string>

#include "tests/plugin/contract/plugin_log.h"
#include "tests/plugin/contract/vdevice.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

void merge_by(int rails) { setenv("BEELINE_RAILS", std::to_string(rails).c_str(), 1); }

// NCCL 2.24 and 2.25 stop at ncclInvalidUsage. For a single device they want one, too, which may be
// the device itself.
void must_not_merge(const Session& session) {
  int dev = 0;
  BL_MUST(session.net().make_vdevice(2, {0, 1}, &dev) == ncclInvalidArgument);
  BL_MUST_SUCCEED(session.net().make_vdevice(1, {1}, &dev));
  BL_MUST(dev == 1);
}

}  // namespace

TEST_CASE("rails: NCCL gets devices with several NICs, and no others", "[contract][rails]") {
  const Abi abi = GENERATE(from_range(some_abis()));
  CAPTURE(abi);
  run_alone([&] {
    merge_by(2);
    const Session session(abi);
    BL_MUST(session.devices() == 4);
    for (int dev = 0; dev < 4; ++dev) {
      const Properties found = session.properties(dev);
      const std::string names =
          "softnic" + std::to_string(2 * dev) + "+softnic" + std::to_string(2 * dev + 1);
      BL_MUST(found.name == "beeline_" + names);
      BL_MUST(found.speed == 200'000);
      BL_MUST(!found.members || found.members == Group{dev});
    }
    BL_MUST(log_has(NCCL_LOG_INFO,
                    {"BEELINE_RAILS=2: NCCL gets device 3, beeline_softnic6+softnic7, 200G: "
                     "softnic6 port 1, softnic7 port 1"}));
  });
}

TEST_CASE("rails: NCCL does not merge what the plugin has merged, and the log says why",
          "[contract][rails]") {
  run_alone([&] {
    merge_by(4);
    const Session session;
    must_not_merge(session);
    BL_MUST(session.devices() == 2);
    BL_MUST(log_has(NCCL_LOG_INFO, {"devices are not merged: BEELINE_RAILS has merged them"}));
  });
}

TEST_CASE("rails: NCCL merges nothing where NCCL_IB_MERGE_NICS forbids it", "[contract][rails]") {
  run_alone([] {
    setenv("NCCL_IB_MERGE_NICS", "0", 1);
    const Session session;
    must_not_merge(session);
    BL_MUST(session.devices() == 8);
    BL_MUST(log_has(NCCL_LOG_INFO, {"devices are not merged: NCCL_IB_MERGE_NICS"}));
  });
}

TEST_CASE("rails: data arrives, whatever the number of NICs at either end", "[contract][rails]") {
  const auto [sender, receiver] = GENERATE(table<int, int>({{1, 3}, {8, 2}, {3, 8}}));
  CAPTURE(sender, receiver);
  const auto prepare = [sender = sender, receiver = receiver](Peer& peer) {
    merge_by(peer.rank() == kSenderRank ? sender : receiver);
  };
  const auto last = [](Peer&, const Session& session) { return last_device(session); };
  must_carry_messages(usual_way(), last, last, prepare);
}

TEST_CASE("rails: data arrives over several queue pairs of each NIC", "[contract][rails]") {
  const auto [rails, split] = GENERATE(table<int, const char*>({{1, "1"}, {2, "0"}, {4, "1"}}));
  CAPTURE(rails, split);
  const auto prepare = [rails = rails, split = split](Peer& peer) {
    merge_by(rails);
    setenv("NCCL_IB_SPLIT_DATA_ON_QPS", split, 1);
    // The end that wants more decides.
    if (peer.rank() == kSenderRank) setenv("NCCL_IB_QPS_PER_CONNECTION", "4", 1);
  };
  const auto first = [](Peer&, const Session&) { return 0; };
  must_carry_messages(usual_way(), first, first, prepare);
}
