// SPDX-License-Identifier: Apache-2.0
//
// The commands for faults: parsing, their effect on the port's record and on sysfs, how they end,
// and that interrupted ones can be repeated.
#include <infiniband/verbs.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/base/clock.h"
#include "softnic/fabric/device_presence.h"
#include "softnic/fabric/port_command.h"
#include "softnic/spec/gid_words.h"
#include "tests/beds/softnic/port_words.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

namespace fs = std::filesystem;
using softnic::PortCommand;
using softnic::PortRecord;
using Kind = PortCommand::Kind;
using softnic::test::complaint;
using softnic::test::must_parse;

std::string refusal(const TestFabric& fabric, const std::string& target, const std::string& text) {
  const auto order = softnic::read_targeted_command(fabric.fabric(), target, text);
  return order ? "(accepted)" : order.error().text;
}

PortRecord& port_of(const TestFabric& fabric, const std::string& name = "h0/softnic0") {
  const auto where = softnic::find_port(fabric.fabric(), name);
  if (!where) FAIL(where.error().text);
  return softnic::port_at(fabric.fabric(), *where);
}

softnic::DeviceRecord& device_of(const TestFabric& fabric) {
  return fabric.fabric().header().devices[0];
}

std::string sysfs(const TestFabric& fabric, const std::string& path) {
  std::ifstream file(fabric.fabric().sysfs_root("h0") + "/" + path);
  if (!file) return "(no such file)";
  std::string line;
  std::getline(file, line);
  return line;
}

const std::string kPortDir = "class/infiniband/softnic0/ports/1/";

// Paths below class/ and devices/, with the targets of links.
std::vector<std::string> tree_of(const TestFabric& fabric) {
  const fs::path root = fabric.fabric().sysfs_root("h0");
  std::vector<std::string> paths;
  for (const char* part : {"class", "devices"})
    for (const auto& entry : fs::recursive_directory_iterator(root / part))
      paths.push_back(fs::relative(entry.path(), root).string() +
                      (entry.is_symlink() ? " -> " + fs::read_symlink(entry).string() : ""));
  std::sort(paths.begin(), paths.end());
  return paths;
}

softnic::FabricSpec with_infiniband() {
  softnic::FabricSpec spec = softnic::default_fabric();
  softnic::DeviceSpec& device = spec.hosts[1].devices[0];
  device.link_layer = softnic::LinkLayer::kInfiniBand;
  device.ports = {softnic::PortSpec{}, softnic::PortSpec{}};
  return spec;
}

}  // namespace

TEST_CASE("fault_command: every command is parsed and formatted unchanged", "[softnic][fault]") {
  for (const char* text : {"down",
                           "up",
                           "rate=200M",
                           "rate=max",
                           "latency=50us",
                           "jitter=50us",
                           "loss=2.5%",
                           "loss=100ppm",
                           "loss=0",
                           "blackhole",
                           "pause",
                           "pause=200ms",
                           "resume",
                           "error=retry_exc_err@3",
                           "corrupt@7",
                           "gid=3:none",
                           "discard=64@7",
                           "pkey=0x8001",
                           "lid=7",
                           "event=lid_change",
                           "reset",
                           "remove",
                           "return",
                           "refuse-err=on",
                           "refuse-err=off",
                           "refuse-gpu=on",
                           "refuse-gpu=off",
                           "hide-events=on",
                           "hide-events=off",
                           "command=100ms"})
    CHECK(softnic::command_text(must_parse(text)) == text);
  CHECK(softnic::command_text(must_parse("gid=3:fe80::1/rocev2")) ==
        "gid=3:fe80:0000:0000:0000:0000:0000:0000:0001/roce_v2");
}

TEST_CASE("fault_command: values are converted to their units", "[softnic][fault]") {
  CHECK(must_parse("loss=2.5%").value == 25'000);
  CHECK(must_parse("loss=100%").value == 1'000'000);
  CHECK(must_parse("loss=100ppm").value == 100);
  CHECK(must_parse("loss=0").value == 0);
  CHECK(must_parse("pause=200ms").value == 200'000'000);
  CHECK(must_parse("pkey=0x8001").value == 0x8001);
  CHECK(must_parse("pkey=32769").value == 0x8001);
  CHECK(must_parse("event=IBV_EVENT_PORT_ERR").status == IBV_EVENT_PORT_ERR);
  CHECK(must_parse("event=device_fatal").status == IBV_EVENT_DEVICE_FATAL);
  CHECK(must_parse("gid=12:fe80::1").value == 12);
  CHECK(must_parse("gid=12:fe80::1").gid->front() == 0xfe);
  CHECK(!must_parse("gid=12:fe80::1").gid_kind);
  CHECK(must_parse("gid=12:fe80::1/roce_v1").gid_kind == softnic::GidKind::kRoceV1);
  CHECK(!must_parse("gid=12:none").gid);
}

TEST_CASE("fault_command: a wrong command is reported with the right form", "[softnic][fault]") {
  CHECK(complaint("los=1%") == "unknown command \"los=1%\"; did you mean loss=SHARE?");
  CHECK(complaint("blackhole=1") == "unknown command \"blackhole=1\"; did you mean blackhole?");
  CHECK(complaint("loss=2") == "\"2\" is not a share: write for example 2.5% or 100ppm, or 0");
  CHECK(complaint("loss=101%") == "share 101% is out of range: 1ppm to 100%, or 0");
  CHECK(complaint("loss=0.1ppm") == "share 0.1ppm is out of range: 1ppm to 100%, or 0");
  CHECK(complaint("pause=0") == "a pause of 0 has no effect; use resume to end a pause");
  CHECK_THAT(complaint("pkey=0x8000"), Catch::StartsWith("\"0x8000\" is not a P_Key"));
  CHECK_THAT(complaint("pkey=0x10001"), Catch::StartsWith("\"0x10001\" is not a P_Key"));
  CHECK_THAT(complaint("pkey="), Catch::StartsWith("\"\" is not a P_Key"));
  CHECK(complaint("lid=0") == "\"0\" is not a LID: write a number from 1 to 49151");
  CHECK(complaint("lid=49152") == "\"49152\" is not a LID: write a number from 1 to 49151");
  CHECK(complaint("event=port_er") == "\"port_er\" is not an event; did you mean port_err?");
  CHECK_THAT(complaint("event=comm_est"), Catch::StartsWith("\"comm_est\" is not an event"));
  CHECK_THAT(complaint("gid=fe80::1"), Catch::StartsWith("\"gid=fe80::1\" lacks the index:"));
  CHECK_THAT(complaint("gid=1:zz"), Catch::StartsWith("\"zz\" is not a GID"));
  CHECK(complaint("gid=1:::") == "all zero stands for an empty entry: write gid=1:none");
  CHECK_THAT(complaint("gid=1:fe80::1/v3"), Catch::StartsWith("\"v3\" is not a GID type"));
  CHECK(complaint("refuse-err=yes") == "\"yes\" is neither on nor off");
}

TEST_CASE("fault_command: a command that its target does not support is refused",
          "[softnic][fault]") {
  const TestFabric fabric(with_infiniband());
  CHECK(refusal(fabric, "h0/softnic0", "remove") == "(accepted)");
  CHECK(refusal(fabric, "h0/softnic0:1", "remove") ==
        "\"remove\" is for the whole device: leave out :1 after h0/softnic0");
  CHECK(refusal(fabric, "h0/softnic0", "gid=16:none") ==
        "h0/softnic0:1 has no GID 16: its table has 16 entries, from 0");
  CHECK(refusal(fabric, "h0/softnic0", "gid=1:fe80::1/ib") ==
        "h0/softnic0:1 is RoCE: its GIDs cannot be ib; choose roce_v1 or roce_v2");
  CHECK(refusal(fabric, "h1/softnic0:2", "gid=1:fe80::1/rocev2") ==
        "h1/softnic0:2 is InfiniBand: its GIDs cannot be roce_v2; choose ib");
  CHECK(refusal(fabric, "h0/softnic0", "lid=7") == "h0/softnic0:1 is RoCE: it has no LID");
  CHECK_THROWS_AS(fabric.command("h0/softnic0:1", "return"), MustError);
}

TEST_CASE("fault_command: loss and jitter are in the record until they are 0", "[softnic][fault]") {
  const TestFabric fabric;
  PortRecord& port = port_of(fabric);
  fabric.command("h0/softnic0", "loss=2.5%");
  CHECK(port.loss_ppm.load() == 25'000);
  CHECK(port.faults.load() == softnic::kFaultLossy);
  fabric.command("h0/softnic0", "jitter=50us");
  CHECK(port.jitter_ns.load() == 50'000);
  CHECK(port.faults.load() == (softnic::kFaultLossy | softnic::kFaultShaped));
  fabric.command("h0/softnic0", "latency=1us");
  fabric.command("h0/softnic0", "jitter=0");
  CHECK(port.faults.load() == (softnic::kFaultLossy | softnic::kFaultShaped));
  fabric.command("h0/softnic0", "latency=0");
  fabric.command("h0/softnic0", "loss=0");
  CHECK(port.faults.load() == 0);
}

TEST_CASE("fault_command: resume ends a black hole and a pause", "[softnic][fault]") {
  const TestFabric fabric;
  PortRecord& port = port_of(fabric);
  fabric.command("h0/softnic0", "blackhole");
  CHECK(port.faults.load() == softnic::kFaultBlackHole);
  fabric.command("h0/softnic0", "pause");
  CHECK(port.faults.load() == (softnic::kFaultBlackHole | softnic::kFaultPaused));
  CHECK(port.paused_until_ns.load() == softnic::kForEver);
  const auto before = static_cast<std::uint64_t>(beeline::now_ns());
  fabric.command("h0/softnic0", "pause=5s");
  const auto after = static_cast<std::uint64_t>(beeline::now_ns());
  CHECK(port.paused_until_ns.load() >= before + 5'000'000'000);
  CHECK(port.paused_until_ns.load() <= after + 5'000'000'000);
  fabric.command("h0/softnic0", "resume");
  CHECK(port.paused_until_ns.load() == 0);
  CHECK(port.faults.load() == 0);
}

TEST_CASE("fault_command: a GID is set, changed and removed, also in sysfs", "[softnic][fault]") {
  const TestFabric fabric;
  const softnic::GidRecord* const gids = port_of(fabric).gids;
  const std::uint32_t generation = fabric.fabric().header().generation.load();

  fabric.command("h0/softnic0", "gid=1:fe80::7");  // keeps its type
  CHECK(fabric.fabric().header().generation.load() == generation + 1);
  CHECK(gids[1].state.load() == 1 + IBV_GID_TYPE_ROCE_V2);
  CHECK(sysfs(fabric, kPortDir + "gids/1") == "fe80:0000:0000:0000:0000:0000:0000:0007");
  CHECK(sysfs(fabric, kPortDir + "gid_attrs/types/1") == "RoCE v2");
  CHECK(sysfs(fabric, kPortDir + "gid_attrs/ndevs/1") == "eth0");

  fabric.command("h0/softnic0",
                 "gid=4:fe80::8");  // the type of the entry two places before: v1, v2, v1, v2, ...
  fabric.command("h0/softnic0", "gid=5:fe80::8");
  CHECK(gids[4].state.load() == 1 + IBV_GID_TYPE_ROCE_V1);
  CHECK(gids[5].state.load() == 1 + IBV_GID_TYPE_ROCE_V2);
  fabric.command("h0/softnic0", "gid=4:fe80::8/rocev2");
  CHECK(gids[4].state.load() == 1 + IBV_GID_TYPE_ROCE_V2);
  fabric.command("h0/softnic0", "gid=12:fe80::9");  // no entry two places away
  CHECK(gids[12].state.load() == 1 + IBV_GID_TYPE_ROCE_V2);

  fabric.command("h0/softnic0", "gid=1:none");
  CHECK(gids[1].state.load() == 0);
  CHECK(sysfs(fabric, kPortDir + "gids/1") == "0000:0000:0000:0000:0000:0000:0000:0000");
  CHECK(sysfs(fabric, kPortDir + "gid_attrs/types/1").empty());
}

TEST_CASE("fault_command: a GID of an InfiniBand port has the InfiniBand type",
          "[softnic][fault]") {
  const TestFabric fabric(with_infiniband());
  fabric.command("h1/softnic0:2", "gid=3:fe80::7");
  CHECK(port_of(fabric, "h1/softnic0:2").gids[3].state.load() == 1 + IBV_GID_TYPE_IB);
}

TEST_CASE("fault_command: the P_Key is in the record and in sysfs", "[softnic][fault]") {
  const TestFabric fabric;
  fabric.command("h0/softnic0", "pkey=0x8001");
  CHECK(port_of(fabric).pkey.load() == 0x8001);
  CHECK(sysfs(fabric, kPortDir + "pkeys/0") == "0x8001");
  CHECK(sysfs(fabric, "class/infiniband/softnic1/ports/1/pkeys/0") == "0xffff");
}

TEST_CASE("fault_command: the LID is in the record and in sysfs", "[softnic][fault]") {
  softnic::FabricSpec spec = softnic::default_fabric();
  spec.hosts[0].devices[0].link_layer = softnic::LinkLayer::kInfiniBand;
  const TestFabric fabric(spec);
  fabric.command("h0/softnic0", "lid=777");
  CHECK(port_of(fabric).lid.load() == 777);
  CHECK(sysfs(fabric, kPortDir + "lid") == "0x309");
}

TEST_CASE("fault_command: reset ends every disturbance, but no removal and no GID",
          "[softnic][fault]") {
  const TestFabric fabric;
  const PortRecord& port = port_of(fabric);
  for (const char* command :
       {"down", "rate=1M", "jitter=1ms", "loss=1%", "blackhole", "pause=10s", "error=fatal_err@1",
        "corrupt@1", "discard=64@1", "pkey=0x8001", "gid=1:fe80::7", "refuse-err=on",
        "refuse-gpu=on", "hide-events=on", "command=1ms", "remove"})
    fabric.command("h0/softnic0", command);
  CHECK(device_of(fabric).refuses_to_break.load() == 1);
  CHECK(device_of(fabric).refuses_gpu_memory.load() == 1);

  fabric.command("h0/softnic0", "reset");
  CHECK(port.faults.load() == softnic::kFaultRemoved);
  CHECK(port.jitter_ns.load() == 0);
  CHECK(port.loss_ppm.load() == 0);
  CHECK(port.paused_until_ns.load() == 0);
  CHECK(port.pkey.load() == softnic::kDefaultPkey);
  CHECK(device_of(fabric).refuses_to_break.load() == 0);
  CHECK(device_of(fabric).refuses_gpu_memory.load() == 0);
  CHECK(device_of(fabric).hides_events.load() == 0);
  CHECK(device_of(fabric).command_ns.load() == 0);
  CHECK(softnic::is_removed(device_of(fabric)));

  fabric.command("h0/softnic0", "return");
  CHECK(port.faults.load() == 0);
  CHECK(sysfs(fabric, kPortDir + "pkeys/0") == "0xffff");
  CHECK(sysfs(fabric, kPortDir + "state") == "4: ACTIVE");
  CHECK(sysfs(fabric, kPortDir + "gids/1") == "fe80:0000:0000:0000:0000:0000:0000:0007");
}

TEST_CASE("fault_command: a removed device is not in sysfs and returns unchanged",
          "[softnic][fault]") {
  const TestFabric fabric(with_infiniband());
  const std::vector<std::string> before = tree_of(fabric);
  fabric.command("h0/softnic0", "remove");
  CHECK(device_of(fabric).removals.load() == 1);
  CHECK(port_of(fabric).faults.load() == softnic::kFaultRemoved);
  for (const std::string& path : tree_of(fabric)) {
    CHECK(path.find("softnic0") == std::string::npos);
    CHECK(path.find("uverbs0") == std::string::npos);
    CHECK(path.find("eth0") == std::string::npos);
  }
  CHECK(sysfs(fabric, "class/infiniband/softnic1/ports/1/state") == "4: ACTIVE");
  CHECK(sysfs(fabric, "class/net/eth1/operstate") == "up");

  fabric.command("h0/softnic0", "return");
  CHECK(device_of(fabric).removals.load() == 2);
  CHECK(port_of(fabric).faults.load() == 0);
  CHECK(tree_of(fabric) == before);
  CHECK(sysfs(fabric, "class/net/eth0/operstate") == "up");
}

TEST_CASE("fault_command: changes to a removed device are in sysfs when it is back",
          "[softnic][fault]") {
  const TestFabric fabric;
  for (const char* command : {"remove", "down", "pkey=0x8001", "gid=3:none", "return"})
    fabric.command("h0/softnic0", command);
  CHECK(sysfs(fabric, kPortDir + "state") == "1: DOWN");
  CHECK(sysfs(fabric, kPortDir + "pkeys/0") == "0x8001");
  CHECK(sysfs(fabric, kPortDir + "gids/3") == "0000:0000:0000:0000:0000:0000:0000:0000");
  CHECK(sysfs(fabric, "class/net/eth0/operstate") == "down");
}

TEST_CASE("fault_command: repeated removals and returns count once", "[softnic][fault]") {
  const TestFabric fabric(with_infiniband());
  fabric.command("h1/softnic0", "return");
  CHECK(fabric.fabric().header().devices[2].removals.load() == 0);
  fabric.command("h1/softnic0", "remove");
  fabric.command("h1/softnic0", "remove");
  CHECK(fabric.fabric().header().devices[2].removals.load() == 1);
  CHECK(port_of(fabric, "h1/softnic0:1").faults.load() == softnic::kFaultRemoved);
  CHECK(port_of(fabric, "h1/softnic0:2").faults.load() == softnic::kFaultRemoved);
  fabric.command("h1/softnic0", "return");
  fabric.command("h1/softnic0", "return");
  CHECK(fabric.fabric().header().devices[2].removals.load() == 2);
  CHECK(port_of(fabric, "h1/softnic0:2").faults.load() == 0);
}

// A process that dies in a removal leaves a prefix of its stores and renames. The test makes some
// of these states itself.
TEST_CASE("fault_command: repeating an interrupted removal completes it", "[softnic][fault]") {
  const TestFabric fabric;
  const std::vector<std::string> before = tree_of(fabric);
  const fs::path root = fabric.fabric().sysfs_root("h0");
  const ContextPtr context = open_device("softnic0");

  SECTION("after the count") { device_of(fabric).removals.store(1); }
  SECTION("in the middle of the tree") {
    device_of(fabric).removals.store(1);
    port_of(fabric).faults.fetch_or(softnic::kFaultRemoved);
    fs::create_directories(root / "removed/class/net");
    fs::rename(root / "class/net/eth0", root / "removed/class/net/eth0");
  }
  fabric.command("h0/softnic0", "remove");
  CHECK(port_of(fabric).faults.load() == softnic::kFaultRemoved);
  CHECK(sysfs(fabric, kPortDir + "state") == "(no such file)");
  CHECK(!fs::is_symlink(root / "class/net/eth0"));
  CHECK(next_event(context.get()).event_type == IBV_EVENT_DEVICE_FATAL);
  CHECK(!has_event(context.get()));

  // A return whose process died after it changed the count.
  device_of(fabric).removals.store(2);
  fabric.command("h0/softnic0", "return");
  CHECK(port_of(fabric).faults.load() == 0);
  CHECK(tree_of(fabric) == before);
}
