// SPDX-License-Identifier: Apache-2.0
//
// Tests of PCI addresses, links, and the state of a link and a path.
#include "tests/support/catch.h"
#include "tests/tools/topology/machine_text.h"
#include "topology/path.h"

using namespace beeline::topology;

namespace {

LinkState link_of(const Graph& graph, const char* address) {
  return link_above(graph, find_pci(graph, *parse_pci_address(address)));
}

}  // namespace

TEST_CASE("pci_address: it parses what the kernel writes, and nothing else") {
  const auto address = parse_pci_address("10000:e1:1f.7");
  REQUIRE(address);
  CHECK(*address == PciAddress{.domain = 0x10000, .bus = 0xe1, .device = 0x1f, .function = 7});
  CHECK(to_string(*address) == "10000:e1:1f.7");
  CHECK(parse_pci_address("3B:00.0") == parse_pci_address("0000:3b:00.0"));
  for (const char* wrong :
       {"", "3b:00", "3b:00.", "0000:3b:00.8", "0000:3b:20.0", "0000:3b:0.0", "000:3b:00.0",
        "0000:3b:00.0 ", " 3b:00.0", "0x00:3b:00.0", "0000:3b:00.0.0", "0000:0000:3b:00.0",
        "g000:3b:00.0", "123456789:3b:00.0", "+1:00.0", "3b.00:0", "-001:3b:00.0"}) {
    INFO(wrong);
    CHECK_FALSE(parse_pci_address(wrong));
  }
}

TEST_CASE("pcie_link: the bandwidth of sixteen lanes of each generation") {
  const auto rate = [](std::uint32_t mega_transfers) {
    return gigabytes_per_second({mega_transfers, 16});
  };
  CHECK(rate(2'500) == Approx(4.0));
  CHECK(rate(5'000) == Approx(8.0));
  CHECK(rate(8'000) == Approx(15.754).margin(0.001));
  CHECK(rate(16'000) == Approx(31.508).margin(0.001));
  CHECK(rate(32'000) == Approx(63.015).margin(0.001));
  CHECK(rate(64'000) == Approx(121.0));
  CHECK(rate(128'000) == Approx(242.0));
  CHECK(gigabytes_per_second({16'000, 0}) == 0);
  CHECK(gigabytes_per_second({0, 16}) == 0);
}

TEST_CASE("pcie_link: the link with a given bandwidth") {
  CHECK(link_that_carries(63.015) == PcieLink{32'000, 16});
  CHECK(link_that_carries(31.507692) == PcieLink{16'000, 16});
  CHECK(link_that_carries(7.876923) == PcieLink{8'000, 8});
  CHECK(link_that_carries(8) == PcieLink{5'000, 16});
  CHECK(link_that_carries(0.25) == PcieLink{2'500, 1});
  for (const double none : {0.0, -1.0, 5.5, 1e9}) CHECK(link_that_carries(none) == PcieLink{});
}

TEST_CASE("pcie_link: texts") {
  CHECK(to_string(PcieLink{32'000, 16}) == "Gen5 x16");
  CHECK(to_string(PcieLink{0, 8}) == "Gen? x8");
  CHECK(to_string(PcieLink{8'000, 0}) == "Gen3 x?");
  CHECK(to_string(PcieLink{3'000, 4}) == "Gen? x4");
  CHECK(to_string(PcieLink{}) == "unknown");
}

TEST_CASE("link_state: each verdict") {
  const Graph graph = make_machine(
      "host 0000:10\n"
      "  root 10:01.0 now=32x16 max=32x16\n    nic 11:00.0 full now=32x16 max=32x16 speed=400000\n"
      "  root 10:02.0 max=32x16\n    nic 12:00.0 lanes now=32x8 max=32x16\n"
      "  root 10:03.0 max=32x16\n    nic 13:00.0 rate now=8x16 max=32x16\n"
      "  root 10:04.0 max=32x8\n    nic 14:00.0 slot now=32x8 max=32x16\n"
      "  root 10:05.0 max=16x16\n    nic 15:00.0 oldhost now=16x16 max=32x16 speed=200000\n"
      "  root 10:06.0 max=16x16\n    nic 16:00.0 fast now=16x16 max=32x16 speed=400000\n"
      "  root 10:07.0 max=32x16\n    gpu 17:00.0 now=2.5x16 max=32x16\n"
      "  root 10:08.0 max=32x16\n    gpu 18:00.0 now=2.5x8 max=32x16\n"
      "  root 10:09.0 max=32x16\n    nic 19:00.0 unknown\n"
      "  root 10:0a.0 now=16x4 max=32x16\n    nic 1a:00.0 nomax\n"
      "  root 10:0b.0 max=32x16\n    nic 1b:00.0 oldcard now=16x16 max=16x16 speed=400000\n"
      "  root 10:0c.0\n    nic 1c:00.0 nomaxfast now=16x16 speed=400000\n"
      "  root 10:0d.0 max=32x8\n    up 1d:00.0 now=32x8 max=32x16\n");
  CHECK(link_of(graph, "11:00.0").verdict == LinkVerdict::kFull);
  CHECK(link_of(graph, "12:00.0").verdict == LinkVerdict::kDegraded);
  CHECK(link_of(graph, "13:00.0").verdict == LinkVerdict::kDegraded);
  CHECK(link_of(graph, "14:00.0").verdict == LinkVerdict::kNarrowSlot);
  CHECK(link_of(graph, "15:00.0").verdict == LinkVerdict::kFull);
  CHECK(link_of(graph, "16:00.0").verdict == LinkVerdict::kBelowPorts);
  CHECK(link_of(graph, "17:00.0").verdict == LinkVerdict::kIdle);
  CHECK(link_of(graph, "17:00.0").gigabytes_per_second() == Approx(63.015).margin(0.001));
  CHECK(link_of(graph, "18:00.0").verdict == LinkVerdict::kDegraded);
  CHECK(link_of(graph, "19:00.0").verdict == LinkVerdict::kUnknown);
  CHECK(link_of(graph, "1a:00.0").verdict == LinkVerdict::kUnknown);
  CHECK(link_of(graph, "1a:00.0").now == PcieLink{16'000, 4});  // told by the upper end

  CHECK(describe(graph, link_of(graph, "12:00.0")) ==
        "Gen5 x8, could be Gen5 x16: reseat the card, look at the riser and the BIOS");
  CHECK(describe(graph, link_of(graph, "14:00.0")) ==
        "Gen5 x8, the device could use x16: move it to a slot with more lanes");
  CHECK(describe(graph, link_of(graph, "1d:00.0")) ==
        "Gen5 x8, the switch could use x16: if this switch is on a riser or a card, move that to a "
        "slot with more lanes");
  CHECK(describe(graph, link_of(graph, "16:00.0")) ==
        "Gen4 x16 carries 31.5 GB/s, but its network ports carry 50.0 GB/s: move it to a faster "
        "slot");
  CHECK(describe(graph, link_of(graph, "1b:00.0")) ==
        "Gen4 x16 carries 31.5 GB/s, but its network ports carry 50.0 GB/s: it supports no faster "
        "link, so expect the lower bandwidth");
  CHECK(describe(graph, link_of(graph, "1c:00.0")) ==
        "Gen4 x16 carries 31.5 GB/s, but its network ports carry 50.0 GB/s: move it to a faster "
        "slot if it supports one");
}

TEST_CASE("link_state: a virtual function has the link of its physical one") {
  const Graph graph = make_machine(
      "host 0000:10\n"
      "  root 10:01.0 max=32x16\n"
      "    nic 11:00.0 mlx5_0 now=32x4 max=32x16\n"
      "    vf 11:00.1 mlx5_1 pf=11:00.0\n");
  CHECK(link_of(graph, "11:00.1").verdict == LinkVerdict::kDegraded);
  CHECK(link_of(graph, "11:00.1").now == PcieLink{32'000, 4});
}

TEST_CASE("path: the slowest link of the path, without links above it") {
  const Graph graph = make_machine(
      "host 0000:10\n"
      "  root 10:01.0 max=32x16\n"
      "    up 11:00.0 now=2.5x1 max=32x16\n"
      "      down 12:00.0\n"
      "        gpu 13:00.0 now=32x16\n"
      "      down 12:01.0\n"
      "        nic 14:00.0 mlx5_0 now=32x8\n"
      "      down 12:02.0\n"
      "        up 15:00.0 now=16x8\n"
      "          down 16:00.0\n"
      "            nic 17:00.0 mlx5_1 now=32x16\n"
      "          down 16:01.0\n"
      "            nic 18:00.0 mlx5_2\n");
  const NodeIndex gpu = graph.gpus()[0];
  const auto slowest = [&](std::size_t nic) {
    const Path path = path_between(graph, gpu, graph.nics()[nic]);
    REQUIRE(path.bottleneck);
    return label(graph[path.bottleneck->node]);
  };
  CHECK(slowest(0) == "mlx5_0");
  CHECK(slowest(1) == "bridge 0000:15:00.0");
  CHECK(slowest(2) == "bridge 0000:15:00.0");
  CHECK_FALSE(path_between(graph, gpu, graph.nics()[1]).has_unknown_link);
  CHECK(path_between(graph, gpu, graph.nics()[2]).has_unknown_link);

  const Path path = path_between(graph, gpu, graph.nics()[0]);
  CHECK(describe(graph, path) ==
        "GPU 0000:13:00.0 - bridge 0000:12:00.0 - bridge 0000:11:00.0 - bridge 0000:12:01.0 - "
        "mlx5_0");
  CHECK(label(graph[path.nodes[path.top]]) == "bridge 0000:11:00.0");
  CHECK(path_between(graph, gpu, gpu).nodes == std::vector<NodeIndex>{gpu});
}

TEST_CASE("path: without a known link there is no bottleneck") {
  const Graph graph = make_machine("host 0000:10\n  gpu 10:01.0\n  nic 10:02.0 mlx5_0\n");
  const Path path = path_between(graph, graph.gpus()[0], graph.nics()[0]);
  CHECK_FALSE(path.bottleneck);
  CHECK(path.has_unknown_link);
}
