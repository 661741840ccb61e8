// SPDX-License-Identifier: Apache-2.0
//
// makeVDevice: NCCL merges devices, asks for the properties of the new one, and connects it.
// These tests need a fabric with eight NICs on each host. Those with the tag [processes] begin with
// a process in which nothing has been merged, or have an end in each of two processes.
#include "tests/plugin/contract/vdevice.h"

#include <algorithm>
#include <climits>
#include <set>
#include <string>

#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr int kNics = 8;
constexpr int kAllPairs = kNics * (kNics - 1) / 2;

bool is_logged(ncclDebugLogLevel level, const std::string& text) { return log_has(level, {text}); }

// Both are refused, and nothing has changed.
void must_refuse(const Session& session, int count, const std::vector<int>& members) {
  const int before = session.devices();
  int dev = -7;
  BL_MUST(session.net().make_vdevice(count, members, &dev) == ncclInvalidArgument);
  BL_MUST(dev == -7);
  BL_MUST(session.devices() == before);
}

}  // namespace

TEST_CASE("vdevice: merged devices follow the physical ones, with the properties that NCCL wants",
          "[contract][vdevice][processes]") {
  const Abi abi = GENERATE(from_range(abis_with_vdevices()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    const std::vector<Group> groups = {{0, 1}, {2, 3}, {4, 5, 6, 7}};
    const std::vector<int> made = merge_as_nccl(session, groups);
    BL_MUST((made == std::vector<int>{kNics, kNics + 1, kNics + 2}));
    std::set<std::string> names;
    for (int dev = 0; dev < session.devices(); ++dev) names.insert(session.properties(dev).name);
    BL_MUST(names.size() == kNics + groups.size());
    BL_MUST(names.contains("beeline_softnic0+softnic1"));
    BL_MUST(names.contains("beeline_softnic4+softnic5+softnic6+softnic7"));
    for (size_t i = 0; i < groups.size(); ++i) {
      const Properties merged = session.properties(made[i]);
      Properties again{};
      BL_MUST_SUCCEED(session.net().properties(made[i], 0x5A, &again));  // every field is written
      BL_MUST(again == merged);
      const Properties first = session.properties(groups[i].front());
      BL_MUST(merged.speed == first.speed * static_cast<int>(groups[i].size()));
      BL_MUST(std::string(merged.pci_path) == first.pci_path);
      BL_MUST(merged.guid == first.guid && merged.port == first.port);
      BL_MUST(merged.ptr_support == first.ptr_support && merged.force_flush == first.force_flush);
      BL_MUST(merged.max_recvs == first.max_recvs && merged.max_comms == first.max_comms);
      BL_MUST(merged.max_p2p_bytes == first.max_p2p_bytes);
      BL_MUST(merged.device_type == first.device_type);
    }
  });
}

TEST_CASE("vdevice: four NICs may be merged up to v11, and eight from v12 on",
          "[contract][vdevice][processes]") {
  const Abi abi = GENERATE(from_range(abis_with_vdevices()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    const int most = most_members(abi);
    BL_MUST(merged_device(session, most) == kNics);
    must_refuse(session, most + 1, {0, 1, 2, 3, 4, 5, 6, 7});
    BL_MUST(is_logged(NCCL_LOG_WARN, std::to_string(most + 1) + " devices cannot be merged: this " +
                                         "version of NCCL's interface merges at most " +
                                         std::to_string(most)));
  });
}

TEST_CASE("vdevice: what cannot be merged is refused, with the reason in the log",
          "[contract][vdevice]") {
  run_alone([&] {
    const Session session;
    merged_device(session, 2);
    must_refuse(session, 0, {});
    must_refuse(session, -1, {0, 1});
    must_refuse(session, INT_MIN, {0, 1});
    must_refuse(session, INT_MAX, {0, 1});
    must_refuse(session, 2, {0, -1});
    must_refuse(session, 2, {0, INT_MAX});
    must_refuse(session, 2, {3, 3});
    must_refuse(session, 2, {0, kNics});  // which is merged itself
    BL_MUST(is_logged(NCCL_LOG_WARN, "devices 3, 3 cannot be merged: 3 is named twice"));
    BL_MUST(is_logged(NCCL_LOG_WARN, "there is no unmerged device 8; the highest number is 7"));
    BL_MUST(session.net().make_vdevice(2, {0, 1}, nullptr) == ncclInvalidArgument);
  });
}

TEST_CASE("vdevice: what is merged already is found again, and one NIC becomes a device",
          "[contract][vdevice][processes]") {
  run_alone([&] {
    const Session session;
    clear_log();
    const int dev = merged_device(session, 2);
    int again = 0;
    BL_MUST_SUCCEED(session.net().make_vdevice(2, {0, 1}, &again));
    BL_MUST(again == dev);
    const auto lines = find_log_lines(NCCL_LOG_INFO, {"merged into device"});
    BL_MUST(lines.size() == 1);
    BL_MUST(
        lines[0].ends_with("merged into device 8, beeline_softnic0+softnic1, 200G: "
                           "softnic0 port 1, softnic1 port 1"));
    BL_MUST_SUCCEED(session.net().make_vdevice(1, {5}, &again));
    BL_MUST(again == dev + 1);
    BL_MUST(session.devices() == kNics + 2);
  });
}

TEST_CASE("vdevice: NCCL 2.24 to 2.26 get a device for each NIC, and these devices carry data",
          "[contract][vdevice][processes]") {
  const Abi abi = GENERATE(Abi::kV9, Abi::kV10);
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    const std::vector<int> made = merge_as_nccl_2_24(session, {{4, 5}, {0, 1}});
    BL_MUST(made.size() == kNics - 2);  // of 0+1, 2, 3, 4+5, 6 and 7
    const Properties alone = session.properties(2);
    const Properties same = session.properties(made[1]);
    BL_MUST(std::string(same.name) == alone.name && same.speed == alone.speed);
    BL_MUST(same.guid == alone.guid && std::string(same.pci_path) == alone.pci_path);
    uint32_t seed = 0;
    for (const int dev : made) {
      must_carry(session.net(), link_to_self(session, made.front(), dev), ++seed);
    }
  });
}

TEST_CASE("vdevice: after the last communicator, NCCL finds and merges the physical devices anew",
          "[contract][vdevice][processes]") {
  run_alone([&] {
    const std::vector<Group> groups = {{0, 1}, {2, 3}};
    Properties before{};
    std::string name;
    {
      const Session first;
      before = first.properties(merge_as_nccl(first, groups).back());
      name = before.name;
    }
    {
      const Session second;
      const std::vector<int> made = merge_as_nccl(second, groups);
      BL_MUST(second.properties(made.back()) == before);
    }
    // An NCCL that has kept the plugin uses the merged devices without another call.
    const Session third;
    BL_MUST(third.properties(kNics + 1) == before);
    BL_MUST(before.name == name);  // the texts are where they were
  });
}

TEST_CASE("vdevice: each communicator of NCCL 2.28.3 counts and merges the physical devices",
          "[contract][vdevice][processes]") {
  run_alone([] {
    const Session first(Abi::kV11);
    const std::vector<int> made = merge_as_nccl(first, {{0, 1}});
    {
      const Session second(Abi::kV11);
      BL_MUST(merge_as_nccl(second, {{0, 1}}) == made);
      link_to_self(second, made.front(), made.front());
    }
    BL_MUST(last_device(first) == made.front());
    link_to_self(first, made.front(), made.front());
  });
}

TEST_CASE("vdevice: a later communicator that has asked for properties counts merged devices, too",
          "[contract][vdevice][processes]") {
  run_alone([&] {
    const Session first;
    merge_as_nccl(first, {{0, 1}});
    const Session second;
    second.properties(0);
    BL_MUST(second.devices() == kNics + 1);
    link_to_self(second, kNics, kNics);
  });
}

TEST_CASE("vdevice: init in another thread does not change what a thread counts",
          "[contract][vdevice]") {
  run_two(
      PeerMode::kThreads,
      [&](Peer& peer) {
        const Session session;
        merged_device(session, 2);
        const int all = session.devices();
        BL_MUST(all > kNics);
        peer.meet();
        peer.meet();  // the other thread has called init
        BL_MUST(session.devices() == all);
        peer.meet();
      },
      [&](Peer& peer) {
        peer.meet();
        const Session session;
        peer.meet();
        peer.meet();  // the other thread has counted
        BL_MUST(session.devices() == kNics);
      });
}

TEST_CASE("vdevice: devices and their properties may be asked for while others are merged",
          "[contract][vdevice]") {
  run_two(
      PeerMode::kThreads,
      [&](Peer& peer) {
        const Session session;
        peer.meet();
        for (int one = 0; one < kNics; ++one) {
          for (int other = one + 1; other < kNics; ++other) {
            int dev = 0;
            BL_MUST_SUCCEED(session.net().make_vdevice(2, {one, other}, &dev));
          }
        }
        peer.meet();
      },
      [&](Peer& peer) {
        const Session session;
        peer.meet();
        for (int count = 0; count < kNics + kAllPairs;) {
          count = session.devices();
          for (int dev = 0; dev < count; ++dev) BL_MUST(session.properties(dev).speed > 0);
        }
        peer.meet();
      });
}

TEST_CASE("vdevice: data arrives, whatever the number of NICs at either end",
          "[contract][vdevice]") {
  const auto [sender, receiver] =
      GENERATE(table<int, int>({{1, 1}, {2, 2}, {1, 2}, {4, 1}, {8, 8}, {8, 3}}));
  CAPTURE(sender, receiver);
  const auto device = [](int count) {
    return [count](Peer&, const Session& session) { return merged_device(session, count); };
  };
  must_carry_messages(usual_way(), device(sender), device(receiver));
}
