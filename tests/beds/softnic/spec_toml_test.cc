// SPDX-License-Identifier: Apache-2.0
// The fabric file: the effect of each key, default values, and the message for every mistake.
#include "softnic/spec/spec_toml.h"

#include <arpa/inet.h>

#include <map>
#include <set>

#include "softnic/spec/spec_check.h"
#include "tests/support/catch.h"

namespace {

using softnic::DeviceSpec;
using softnic::FabricSpec;
using softnic::GidKind;
using softnic::GidSpec;
using softnic::HostSpec;
using softnic::LinkLayer;
using softnic::PortSpec;

FabricSpec parsed(const std::string& text) {
  auto spec = softnic::parse_fabric(text, "f.toml");
  if (!spec) FAIL(spec.error().text);
  return *std::move(spec);
}

std::string parse_error(const std::string& text) {
  const auto spec = softnic::parse_fabric(text, "f.toml");
  return spec ? "(accepted)" : spec.error().text;
}

std::string with_device(const std::string& lines) {
  return "[[host]]\nname = 'h0'\n[[host.device]]\nname = 's0'\n" + lines;
}

std::string ip(const GidSpec& gid) {
  char text[INET6_ADDRSTRLEN];
  inet_ntop(AF_INET6, gid.raw.data(), text, sizeof text);
  return text;
}

FabricSpec must_read(const std::string& name) {
  auto spec = softnic::read_fabric_file(SOFTNIC_FABRICS_DIR "/" + name);
  if (!spec) FAIL(spec.error().text);
  return *std::move(spec);
}

}  // namespace

TEST_CASE("spec_toml: every key reaches its field", "[unit]") {
  const FabricSpec spec = parsed(R"(
    clock_scale = 0.25
    [[host]]
    name = "left"
    numa_nodes = 2
    [[host.device]]
    name = "nic"
    link_layer = "roce"
    pci = "pci0000:40/0000:40:01.1/0000:41:00.0"
    numa = 1
    gbps = 200
    mtu = 1024
    rate = "200M"
    latency = "2us"
    up = false
    network = "rail0"
    netdev = "ens3"
    gid_table_len = 8
    gids = [{index = 3, gid = "::ffff:10.0.0.1", type = "roce_v2"}]
    [[host.gpu]]
    name = "gpu0"
    pci = "pci0000:40/0000:40:01.2/0000:42:00.0"
    numa = 1
  )");
  CHECK(spec.clock_scale == 0.25);
  REQUIRE(spec.hosts.size() == 1);
  const HostSpec& host = spec.hosts[0];
  CHECK(host.name == "left");
  CHECK(host.numa_nodes == 2);
  REQUIRE(host.devices.size() == 1);
  const DeviceSpec& device = host.devices[0];
  CHECK(device.name == "nic");
  CHECK(device.link_layer == LinkLayer::kEthernet);
  CHECK(device.pci == "pci0000:40/0000:40:01.1/0000:41:00.0");
  CHECK(device.numa == 1);
  REQUIRE(device.ports.size() == 1);
  const PortSpec& port = device.ports[0];
  CHECK(port.gbps == 200);
  CHECK(port.mtu == 1024);
  CHECK(port.rate_bytes_s == 200'000'000);
  CHECK(port.latency_ns == 2'000);
  CHECK_FALSE(port.up);
  CHECK(port.network == "rail0");
  CHECK(port.netdev == "ens3");
  CHECK(port.gid_table_len == 8);
  REQUIRE(port.gids.size() == 1);
  CHECK(port.gids[0].index == 3);
  CHECK(port.gids[0].kind == GidKind::kRoceV2);
  CHECK(ip(port.gids[0]) == "::ffff:10.0.0.1");
  REQUIRE(host.gpus.size() == 1);
  CHECK(host.gpus[0].name == "gpu0");
  CHECK(host.gpus[0].pci == "pci0000:40/0000:40:01.2/0000:42:00.0");
  CHECK(host.gpus[0].numa == 1);
}

TEST_CASE("spec_toml: a RoCE port gets an interface and GIDs in the order of mlx5", "[unit]") {
  const FabricSpec spec = softnic::default_fabric();
  REQUIRE(spec.hosts.size() == 2);
  const DeviceSpec& device = spec.hosts[1].devices[1];
  CHECK(device.name == "softnic1");
  const PortSpec& port = device.ports.at(0);
  CHECK(port.netdev == "eth1");
  CHECK(port.lid == 0);
  REQUIRE(port.gids.size() == 4);
  CHECK(ip(port.gids[0]) == "fe80::50:1ff:fe00:101");
  CHECK(port.gids[0].kind == GidKind::kRoceV1);
  CHECK(port.gids[1].raw == port.gids[0].raw);
  CHECK(port.gids[1].kind == GidKind::kRoceV2);
  CHECK(ip(port.gids[2]) == "::ffff:10.1.1.1");
  CHECK(port.gids[2].kind == GidKind::kRoceV1);
  CHECK(port.gids[3].raw == port.gids[2].raw);
  CHECK(port.gids[3].kind == GidKind::kRoceV2);
}

TEST_CASE("spec_toml: InfiniBand ports get LIDs around those given, and one GID", "[unit]") {
  const FabricSpec spec = parsed(
      "[[host]]\nname = 'h[0-1]'\n"
      "[[host.device]]\nname = 'a'\nlink_layer = 'infiniband'\n"
      "[[host.device]]\nname = 'b'\nlink_layer = 'infiniband'\nports = [{}, {}]\n");
  std::set<int> lids;
  for (const HostSpec& host : spec.hosts)
    for (const DeviceSpec& device : host.devices)
      for (const PortSpec& port : device.ports) {
        lids.insert(port.lid);
        CHECK(port.netdev.empty());
        REQUIRE(port.gids.size() == 1);
        CHECK(port.gids[0].kind == GidKind::kIb);
      }
  CHECK(lids == std::set<int>{1, 2, 3, 4, 5, 6});
  CHECK(ip(spec.hosts[1].devices[1].ports[1].gids[0]) == "fe80::250:103:0:102");
}

TEST_CASE("spec_toml: an assigned LID avoids one that the file gives", "[unit]") {
  const FabricSpec spec = parsed(
      "[[host]]\nname = 'h0'\n"
      "[[host.device]]\nname = 'a'\nlink_layer = 'infiniband'\n"
      "[[host.device]]\nname = 'b'\nlink_layer = 'infiniband'\nlid = 1\n");
  CHECK(spec.hosts[0].devices[0].ports[0].lid == 2);
  CHECK(spec.hosts[0].devices[1].ports[0].lid == 1);
}

TEST_CASE("spec_toml: a name with a range defines many, and arrays give each a value", "[unit]") {
  const FabricSpec spec = parsed(R"(
    [[host]]
    name = "n[08-10]"
    numa_nodes = 2
    [[host.device]]
    name = "mlx5_[0-1]"
    network = "rail[0-1]"
    numa = [0, 1]
    gbps = 50
  )");
  REQUIRE(spec.hosts.size() == 3);
  CHECK(spec.hosts[0].name == "n08");
  CHECK(spec.hosts[2].name == "n10");
  for (const HostSpec& host : spec.hosts) {
    REQUIRE(host.devices.size() == 2);
    CHECK(host.devices[1].name == "mlx5_1");
    CHECK(host.devices[0].numa == 0);
    CHECK(host.devices[1].numa == 1);
    CHECK(host.devices[0].ports[0].network == "rail0");
    CHECK(host.devices[1].ports[0].network == "rail1");
    CHECK(host.devices[1].ports[0].gbps == 50);
  }
}

TEST_CASE("spec_toml: a completed fabric is valid, also at the largest sizes", "[unit]") {
  const std::string text = GENERATE(std::string("h[0-127]|s[0-7]"), std::string("h0|s[0-1023]"),
                                    std::string("h[0-3]|s[0-255]"));
  const std::size_t bar = text.find('|');
  for (const char* layer : {"roce", "infiniband"}) {
    const FabricSpec spec =
        parsed("[[host]]\nname = '" + text.substr(0, bar) + "'\n[[host.device]]\nname = '" +
               text.substr(bar + 1) + "'\nlink_layer = '" + layer + "'\nports = [{}, {}]\n");
    CHECK_FALSE(softnic::find_fault(spec).has_value());
  }
}

TEST_CASE("spec_toml: completing twice changes nothing", "[unit]") {
  FabricSpec spec = must_read("asymmetric.toml");
  const FabricSpec before = spec;
  softnic::complete(spec);
  for (std::size_t h = 0; h < spec.hosts.size(); ++h)
    for (std::size_t d = 0; d < spec.hosts[h].devices.size(); ++d) {
      const DeviceSpec& now = spec.hosts[h].devices[d];
      const DeviceSpec& then = before.hosts[h].devices[d];
      CHECK(now.pci == then.pci);
      CHECK(now.guid == then.guid);
      CHECK(now.ports[0].lid == then.ports[0].lid);
      CHECK(now.ports[0].netdev == then.ports[0].netdev);
      CHECK(now.ports[0].gids.size() == then.ports[0].gids.size());
    }
}

TEST_CASE("spec_toml: the fabrics of the test suite are read", "[unit]") {
  const auto [name, hosts, devices, gpus] = GENERATE(
      table<const char*, std::size_t, std::size_t, std::size_t>({{"roce-2x2.toml", 2, 2, 0},
                                                                 {"ib-2x2.toml", 2, 2, 0},
                                                                 {"dgx-8rail.toml", 2, 8, 8},
                                                                 {"asymmetric.toml", 2, 2, 1},
                                                                 {"scale-32.toml", 32, 8, 0}}));
  const FabricSpec spec = must_read(name);
  CHECK(spec.hosts.size() == hosts);
  CHECK(spec.hosts[0].devices.size() == devices);
  CHECK(spec.hosts[0].gpus.size() == gpus);
}

TEST_CASE("spec_toml: a file that cannot be read is reported with the cause", "[unit]") {
  const auto spec = softnic::read_fabric_file("/nowhere/f.toml");
  REQUIRE_FALSE(spec.has_value());
  CHECK(spec.error().text ==
        "the fabric file /nowhere/f.toml: cannot be opened: No such file or directory");
}

TEST_CASE("spec_toml: an unknown key names the line and the nearest key", "[unit]") {
  CHECK(parse_error(with_device("gpbs = 100\n")) ==
        "f.toml:5: unknown key \"gpbs\" in [[host.device]]; did you mean \"gbps\"?");
  CHECK(parse_error("clock_scal = 1\n[[host]]\nname='h'\n") ==
        "f.toml:1: unknown key \"clock_scal\" in the file; did you mean \"clock_scale\"?");
  CHECK(parse_error("[[host]]\nname='h'\ncolour=1\n") ==
        "f.toml:3: unknown key \"colour\" in [[host]]; the known keys are name, numa_nodes, device "
        "and gpu");
  CHECK(parse_error(with_device("ports = [{gbsp = 1}]\n")) ==
        "f.toml:5: unknown key \"gbsp\" in a ports entry; did you mean \"gbps\"?");
}

TEST_CASE("spec_toml: broken TOML names the line", "[unit]") {
  CHECK_THAT(parse_error("[[host]]\nname = \n"), Catch::StartsWith("f.toml:2: "));
}

TEST_CASE("spec_toml: a wrong value is reported with line, key and reason", "[unit]") {
  const auto [line, reason] = GENERATE(table<const char*, const char*>({
      {"gbps = 'fast'", "gbps: expected an integer, found a string"},
      {"gbps = 123",
       "gbps: 123 is not a port speed; the speeds are 1, 10, 25, 40, 50, 100, 200, 400 and 800"},
      {"gbps = 9000", "gbps: 9000 is out of range: 1 to 800"},
      {"mtu = 1500", "mtu: 1500 is not 256, 512, 1024, 2048 or 4096"},
      {"up = 1", "up: expected true or false, found an integer"},
      {"rate = 200", "rate: expected a string, found an integer"},
      {"rate = '200Q'",
       "rate: \"200Q\" is not a rate: write bytes per second such as 200M (k, M, "
       "G) or max"},
      {"rate = '0'", "rate: rate 0 is out of range: 1 to 10000000000000 bytes per second, or max"},
      {"latency = '5'", "latency: \"5\" is not a time: write for example 50us (ns, us, ms, s)"},
      {"latency = '101s'", "latency: time 101s is out of range: at most 100s"},
      {"link_layer = 'token ring'",
       "link_layer: \"token ring\" is not one of \"roce\" and \"infiniband\""},
      {"lid = 5", "lid: a RoCE port has no LID; the key is for link_layer = \"infiniband\""},
      {"netdev = 'an_interface_name'",
       "netdev: \"an_interface_name\" is not an interface name: up "
       "to 15 letters, digits, '-', '_', '.'"},
      {"numa = 1", "numa 1 is out of range: host h0 has 1 NUMA node"},
      {"numa = [0, 0]", "numa: 2 values for 1 name: an array needs one value for each name"},
      {"network = 'rail[0-1]'", "network: \"rail[0-1]\" gives 2 names; at most 1 are allowed"},
      {"gid_table_len = 17", "gid_table_len: 17 is out of range: 1 to 16"},
      {"gids = [{index = 16, gid = 'fe80::1'}]", "index: 16 is out of range: 0 to 15"},
      {"gids = [{index = 0, gid = 'home'}]",
       "gid: \"home\" is not a GID: write it like an IPv6 "
       "address, fe80::1 or ::ffff:10.0.0.1"},
      {"gids = [{index = 0, gid = '::'}]",
       "gid: all zero stands for an empty entry; leave the entry out instead"},
      {"gids = [{gid = 'fe80::1'}]", "index: is missing: a gids entry is {index, gid, type}"},
      {"gids = [{index = 0, gid = 'fe80::1', type = 'ib'}]",
       "type: \"ib\" is not one of \"roce_v1\" and \"roce_v2\""},
      {"ports = [{}, {}, {}]", "ports: 3 ports; a device has 1 or 2"},
      {"ports = [1]", "ports: expected a table, found an integer"},
      {"gids = 'all'", "gids: expected an array of tables, found a string"},
      {"pci = '0000:41:00.0'",
       "PCI path \"0000:41:00.0\" does not begin with a root like "
       "pci0000:40; write for example "
       "pci0000:40/0000:40:01.1/0000:41:00.0"},
      {"pci = 'pci0000:40'",
       "PCI path \"pci0000:40\" names no function; write for example "
       "pci0000:40/0000:40:01.1/0000:41:00.0"},
      {"pci = 'pci0000:40/0000:40:20.0'",
       "PCI path \"pci0000:40/0000:40:20.0\": \"0000:40:20.0\" "
       "is not an address like 0000:41:00.0"},
      {"pci = 'pci0000:40/0000:41:00.0'",
       "PCI path \"pci0000:40/0000:41:00.0\": 0000:41:00.0 is "
       "not on the bus of its root pci0000:40"},
  }));
  const std::string text = parse_error(with_device(std::string(line) + "\n"));
  const bool whole_device = std::string(reason).find(": ") == std::string::npos ||
                            std::string(reason).starts_with("PCI") ||
                            std::string(reason).starts_with("numa 1");
  CHECK(text == std::string(whole_device ? "f.toml:3: " : "f.toml:5: ") + reason);
}

TEST_CASE("spec_toml: port keys and ports exclude each other", "[unit]") {
  CHECK(parse_error(with_device("gbps = 100\nports = [{}, {}]\n")) ==
        "f.toml:5: gbps: must be in each entry of \"ports\", because the device has \"ports\"");
}

TEST_CASE("spec_toml: duplicates are reported with their line", "[unit]") {
  const std::string host = "[[host]]\nname = 'h0'\n";
  CHECK(parse_error(host + host) == "f.toml:3: two hosts are named \"h0\"");
  CHECK(parse_error(with_device("[[host.device]]\nname = 's0'\n")) ==
        "f.toml:5: host h0 has two devices named \"s0\"");
  CHECK(parse_error(with_device("[[host.gpu]]\nname = 's0'\n")) ==
        "f.toml:5: host h0 has two devices or GPUs named \"s0\"");
  const std::string other = "[[host.device]]\nname = 's1'\n";
  CHECK(parse_error(with_device("netdev = 'e'\n" + other + "netdev = 'e'\n")) ==
        "f.toml:6: netdev \"e\" is already used by h0/s0:1");
  const std::string gid = "gids = [{index = 0, gid = 'fe80::1'}]\n";
  CHECK(parse_error(with_device(gid + other + gid)) ==
        "f.toml:6: gid fe80:0000:0000:0000:0000:0000:0000:0001 (index 0) is already on h0/s0:1");
  const std::string pci = "pci = 'pci0000:40/0000:40:00.0'\n";
  CHECK(parse_error(with_device(pci + other + pci)) ==
        "f.toml:6: PCI address 0000:40:00.0 is already used by h0/s0");
}

TEST_CASE("spec_toml: a GID index or entry twice on one port is refused", "[unit]") {
  CHECK(parse_error(
            with_device("gids = [{index = 0, gid = 'fe80::1'}, {index = 0, gid = 'fe80::2'}]")) ==
        "f.toml:3: gid index 0 appears twice on h0/s0:1");
  CHECK(parse_error(
            with_device("gids = [{index = 0, gid = 'fe80::1'}, {index = 1, gid = 'fe80::1'}]")) ==
        "f.toml:3: gid fe80:0000:0000:0000:0000:0000:0000:0001 appears twice with the same type on "
        "h0/s0:1");
}

TEST_CASE("spec_toml: a LID may come twice only on separate networks", "[unit]") {
  const std::string first = "link_layer = 'infiniband'\nlid = 7\nnetwork = 'a'\n";
  const std::string head = "[[host.device]]\nname = 's1'\nlink_layer = 'infiniband'\nlid = 7\n";
  CHECK(parse_error(with_device(first + head + "network = 'a'\n")) ==
        "f.toml:8: lid 7 is already used by h0/s0:1");
  CHECK(parse_error(with_device(first + head + "network = 'b'\n")) == "(accepted)");
}

TEST_CASE("spec_toml: PCI paths must form a tree", "[unit]") {
  const auto second = [](const std::string& pci) {
    return parse_error(
        with_device("pci = 'pci0000:40/0000:40:01.0/0000:41:00.0'\n[[host.device]]\n"
                    "name = 's1'\npci = '" +
                    pci + "'\n"));
  };
  CHECK(second("pci0000:40/0000:40:01.0/0000:41:01.0") == "(accepted)");
  CHECK(second("pci0000:40/0000:40:02.0/0000:42:00.0") == "(accepted)");
  CHECK(second("pci0000:40/0000:40:02.0/0000:41:01.0") ==
        "f.toml:6: bus 0000:41 is below pci0000:40/0000:40:02.0 here but below "
        "pci0000:40/0000:40:01.0 elsewhere");
  CHECK(second("pci0000:40/0000:40:01.0") ==
        "f.toml:6: PCI address 0000:40:01.0 is already used by a bridge");
  CHECK(second("pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0") ==
        "f.toml:6: PCI address 0000:41:00.0 is already used by h0/s0");
}

TEST_CASE("spec_toml: host names that are files of the fabric are refused", "[unit]") {
  for (const std::string name : {"fabric", "holders", "log", "seats", "arena.3", "ev.x"})
    CHECK(parse_error("[[host]]\nname = '" + name + "'\n") ==
          "f.toml:2: name: \"" + name + "\" is reserved: every fabric has a file of this name");
  CHECK(parse_error("[[host]]\nname = '..'\n") ==
        "f.toml:2: name: \"..\" is not a name: up to 63 letters, digits, '-', '_', '.'");
}

TEST_CASE("spec_toml: an empty file and too many of a thing are refused", "[unit]") {
  CHECK(parse_error("") == "f.toml: no host: a fabric needs at least one [[host]]");
  CHECK(parse_error("[[host]]\n") == "f.toml:1: [[host]] has no name");
  CHECK(parse_error("[[host]]\nname = 'h[0-128]'\n") ==
        "f.toml:2: name: \"h[0-128]\" gives 129 names; at most 128 are allowed");
  CHECK(parse_error("[[host]]\nname = 'h[0-63]'\n\n[[host]]\nname = 'k[0-64]'\n") ==
        "f.toml:4: 129 hosts; at most 128");
  CHECK(parse_error("[[host]]\nname = 'h[0-127]'\n[[host.device]]\nname = 's[0-8]'\n") ==
        "f.toml:1: more than 1024 devices in the fabric");
  CHECK(parse_error("[[host]]\nname = 'h[3-1]'\n") ==
        "f.toml:2: name: \"h[3-1]\" is not a range: write for example name[0-7], lowest first");
}

TEST_CASE("spec_toml: clock_scale has limits", "[unit]") {
  CHECK(parsed("clock_scale = 2\n[[host]]\nname = 'h'\n").clock_scale == 2.0);
  CHECK(parse_error("clock_scale = 0\n[[host]]\nname = 'h'\n") ==
        "f.toml:1: clock_scale: 0 is out of range: 0.0001 to 1000");
  CHECK(parse_error("clock_scale = nan\n[[host]]\nname = 'h'\n") ==
        "f.toml:1: clock_scale: nan is out of range: 0.0001 to 1000");
}

TEST_CASE("spec_toml: the seed and the hazards are read, and off if left out", "[unit]") {
  const FabricSpec plain = parsed(with_device(""));
  CHECK(plain.seed == 1);
  CHECK(!plain.hazards.scatter);
  CHECK(!plain.hazards.hide);
  CHECK(plain.hazards.bunch_ns == 0);
  CHECK(plain.hazards.command_ns == 0);
  const FabricSpec spec = parsed(
      "seed = 7\n[hazards]\nscatter = true\nhide = true\n"
      "bunch = '50us'\ncommand = '1ms'\n" +
      with_device(""));
  CHECK(spec.seed == 7);
  CHECK(spec.hazards.scatter);
  CHECK(spec.hazards.hide);
  CHECK(spec.hazards.bunch_ns == 50'000);
  CHECK(spec.hazards.command_ns == 1'000'000);
}

TEST_CASE("spec_toml: a wrong seed or hazard is reported with its line", "[unit]") {
  CHECK(parse_error("seed = -1") == "f.toml:1: seed: -1 is out of range: 0 to 9223372036854775807");
  CHECK(parse_error("seed = 'x'") == "f.toml:1: seed: expected an integer, found a string");
  CHECK(parse_error("hazards = 3") == "f.toml:1: hazards: expected a table, found an integer");
  CHECK(parse_error("[hazards]\nscater = true") ==
        "f.toml:2: unknown key \"scater\" in [hazards]; did you mean \"scatter\"?");
  CHECK(parse_error("[hazards]\nhide = 1") ==
        "f.toml:2: hide: expected true or false, found an integer");
  CHECK_THAT(parse_error("[hazards]\nbunch = '50'"),
             Catch::StartsWith("f.toml:2: bunch: \"50\" is not a time"));
}
