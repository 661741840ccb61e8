// SPDX-License-Identifier: Apache-2.0
//
// Tests of Graph::make: what it refuses, how it sorts, and what it derives.
#include "topology/graph.h"

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"
#include "topology/graph_build.h"
#include "topology/role.h"

using namespace beeline;
using namespace beeline::topology;

namespace {

std::string error_of(std::vector<Node> nodes) {
  const auto graph = Graph::make({.nodes = std::move(nodes)});
  return graph ? "" : graph.error().text;
}

Node machine() { return {.kind = NodeKind::kMachine}; }
Node below(NodeIndex parent, NodeKind kind, const char* address) {
  return {.kind = kind, .parent = parent, .pci = parse_pci_address(address)};
}

const Node& at(const Graph& graph, const char* address) {
  const NodeIndex found = find_pci(graph, *parse_pci_address(address));
  REQUIRE(found != kNoNode);
  return graph[found];
}

}  // namespace

TEST_CASE("graph: a machine needs no devices") {
  const Graph graph = make_machine("");
  CHECK(graph.size() == 1);
  CHECK(graph.gpus().empty());
  CHECK(graph.nics().empty());
}

TEST_CASE("graph: there is exactly one machine") {
  CHECK(error_of({}) == "0 machines in one description; there must be exactly one");
  CHECK(error_of({machine(), machine()}) ==
        "2 machines in one description; there must be exactly one");
}

TEST_CASE("graph: a parent exists and is above") {
  const Node device = below(7, NodeKind::kDevice, "01:00.0");
  CHECK(error_of({machine(), device}) ==
        "device 0000:01:00.0: is below a node that does not exist");
  CHECK(error_of({machine(), below(kNoNode, NodeKind::kDevice, "01:00.0")}) ==
        "device 0000:01:00.0: is below a node that does not exist");
  CHECK(error_of({machine(), below(0, NodeKind::kDevice, "01:00.0"),
                  below(1, NodeKind::kDevice, "01:00.1")}) ==
        "device 0000:01:00.1: cannot be below device 0000:01:00.0");
  CHECK(error_of({machine(), below(0, NodeKind::kBridge, "01:00.0"),
                  below(1, NodeKind::kHostBridge, "02:00.0")}) ==
        "host bridge 0000:02:00.0: cannot be below bridge 0000:01:00.0");
  CHECK(error_of({{.kind = NodeKind::kMachine, .parent = 0}}) ==
        "machine: is the root, but has a parent");
}

TEST_CASE("graph: a cycle of bridges is refused") {
  CHECK(error_of({machine(), below(2, NodeKind::kBridge, "01:00.0"),
                  below(1, NodeKind::kBridge, "02:00.0")}) ==
        "bridge 0000:01:00.0: is in a cycle of bridges");
  CHECK(error_of({machine(), below(1, NodeKind::kBridge, "01:00.0")}) ==
        "bridge 0000:01:00.0: is in a cycle of bridges");
}

TEST_CASE("graph: duplicates are refused") {
  CHECK(error_of({machine(), below(0, NodeKind::kDevice, "01:00.0"),
                  below(0, NodeKind::kBridge, "01:00.0")}) == "bridge 0000:01:00.0: appears twice");
  CHECK(error_of({machine(),
                  {.kind = NodeKind::kNumaNode, .parent = 0, .number = 1},
                  {.kind = NodeKind::kNumaNode, .parent = 0, .number = 1}}) ==
        "NUMA node 1: appears twice");
  Node nic = below(0, NodeKind::kDevice, "01:00.0");
  nic.role = DeviceRole::kRdmaNic;
  nic.os_devices = {{OsKind::kRdma, "mlx5_0"}};
  Node other = nic;
  other.pci->function = 1;
  CHECK(error_of({machine(), nic, other}) == "mlx5_0: RDMA device mlx5_0 appears twice");
  // A root bus may have a device at its first address.
  CHECK(error_of({machine(), below(0, NodeKind::kHostBridge, "00:00.0"),
                  below(1, NodeKind::kDevice, "00:00.0")})
            .empty());
}

TEST_CASE("graph: a virtual function belongs to a physical one") {
  Node physical = below(0, NodeKind::kDevice, "01:00.0");
  Node function = below(0, NodeKind::kDevice, "01:00.1");
  function.physical_function = 1;
  CHECK(error_of({machine(), physical, function}).empty());
  function.physical_function = 9;
  CHECK(error_of({machine(), physical, function}) ==
        "device 0000:01:00.1: is a virtual function, but its physical function does not exist");
  function.physical_function = 2;
  CHECK(error_of({machine(), physical, function}) ==
        "device 0000:01:00.1: is a virtual function of something that is not a physical function");
}

TEST_CASE("graph: numbers that no machine has are refused") {
  Node device = below(0, NodeKind::kDevice, "01:00.0");
  SECTION("lanes") { device.link_now = {16'000, 64}; }
  SECTION("rate") { device.link_max = {2'000'000'000, 4}; }
  SECTION("NUMA node") { device.numa = -2; }
  SECTION("address") { device.pci->device = 32; }
  SECTION("role") { device.kind = NodeKind::kBridge, device.role = DeviceRole::kGpu; }
  SECTION("port") { device.port = BridgePort::kRoot; }
  CHECK_FALSE(error_of({machine(), device}).empty());
}

TEST_CASE("graph: texts contain no control characters") {
  Node nic = below(0, NodeKind::kDevice, "01:00.0");
  nic.name = "evil\x1b[2J";
  nic.os_devices = {{OsKind::kRdma, "mlx5\n0"}};
  const auto graph = Graph::make({.nodes = {machine(), nic}, .source = "a\tb", .remarks = {"\r"}});
  REQUIRE(graph);
  CHECK(graph->nodes()[1].name == "evil?[2J");
  CHECK(os_name(graph->nodes()[1], OsKind::kRdma) == "mlx5?0");
  CHECK(graph->source() == "a?b");
  CHECK(graph->remarks() == std::vector<std::string>{"?"});
}

TEST_CASE("graph: more devices than a machine has are refused") {
  std::vector<Node> nodes = {machine()};
  for (std::uint32_t i = 0; i < 4097; ++i) {
    Node gpu{.kind = NodeKind::kDevice, .parent = 0, .pci = PciAddress{.domain = i}};
    gpu.role = DeviceRole::kGpu;
    nodes.push_back(std::move(gpu));
  }
  const char* const refused = "4097 GPUs and RDMA NIC ports; at most 4096 are supported";
  CHECK(error_of(nodes) == refused);
  nodes.pop_back();
  CHECK(error_of(nodes).empty());
  nodes.back().role = DeviceRole::kRdmaNic;
  nodes.back().nic_ports.resize(2);
  CHECK(error_of(nodes) == refused);
}

TEST_CASE("graph: its order does not depend on the enumeration") {
  const GraphParts parts = read_machine(machines::two_gpus_a_nic() +
                                        "soft rxe10\nsoft rxe2\n"
                                        "numa 7\n"
                                        "  host 0000:f0\n"
                                        "    nic f0:01.0 irdma0 numa=3\n"
                                        "numa 8\n"
                                        "  host\n"
                                        "    nic e1:01.0 two names\n"
                                        "  host\n"
                                        "    nic e0:01.0 one speed=100 speed=200\n"
                                        "bridge\n  soft siw1\n"
                                        "bridge\n  soft siw0\n");
  const auto expected = Graph::make(parts);
  REQUIRE(expected);
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto graph = Graph::make(shuffled(parts, seed));
    REQUIRE(graph);
    CHECK(std::ranges::equal(graph->nodes(), expected->nodes()));
    CHECK(std::ranges::equal(graph->nics(), expected->nics()));
    CHECK(graph->remarks() == expected->remarks());
  }
}

TEST_CASE("graph: devices are in order of address, then name") {
  const Graph graph = make_machine(
      "soft rxe10\nsoft rxe2\n"
      "host 0001:00\n  nic 0001:00:00.0 mlx5_0\n"
      "host 0000:80\n  nic 80:00.0 mlx5_1\n"
      "host 0000:00\n  nic 00:1f.0 mlx5_2\n");
  std::vector<std::string> names;
  for (const NodeIndex nic : graph.nics()) names.push_back(label(graph[nic]));
  CHECK(names == std::vector<std::string>{"mlx5_2", "mlx5_1", "mlx5_0", "rxe2", "rxe10"});
}

TEST_CASE("graph: nodes below a NUMA node belong to it, whatever they report") {
  const Graph graph = make_machine(
      "numa 0\n"
      "numa 1\n"
      "  host 0000:10\n"
      "    root 10:01.0\n"
      "      gpu 11:00.0\n"
      "      nic 12:00.0 mlx5_0 numa=0\n");
  CHECK(at(graph, "11:00.0").numa == 1);
  CHECK(at(graph, "12:00.0").numa == 1);
  REQUIRE(graph.remarks().size() == 1);
  CHECK(graph.remarks()[0] ==
        "mlx5_0 says NUMA node 0, but host bridge 0000:10:00.0 belongs to NUMA node 1; NUMA node 1 "
        "is used");
}

TEST_CASE("graph: a host bridge moves below the NUMA node of its devices") {
  const Graph graph = make_machine(
      "package 0 cpus=0-7\n"
      "  numa 0 cpus=0-3\n"
      "  numa 1 cpus=4-7\n"
      "  host 0000:10\n"
      "    gpu 10:01.0 numa=1\n"
      "    gpu 10:02.0\n"
      "host 0000:20\n"
      "  gpu 20:01.0 numa=5\n");
  CHECK(at(graph, "10:02.0").numa == 1);
  CHECK(at(graph, "10:02.0").cpus == "4-7");
  CHECK(label(graph[graph[at(graph, "10:02.0").parent].parent]) == "NUMA node 1");
  CHECK(label(graph[graph[at(graph, "20:01.0").parent].parent]) == "NUMA node 5");
  CHECK(graph.remarks().empty());
}

TEST_CASE("graph: a machine with one NUMA node has its devices there") {
  CHECK(at(make_machine("numa 0\nhost 0000:10\n  gpu 10:01.0\n"), "10:01.0").numa == 0);
  CHECK(at(make_machine("numa 0\nnuma 1\nhost 0000:10\n  gpu 10:01.0\n"), "10:01.0").numa == -1);
}

TEST_CASE("graph: the kind of a bridge follows from its position") {
  const Graph graph = make_machine(
      "host 0000:10\n"
      "  bridge 10:01.0\n"
      "    bridge 11:00.0\n"
      "      bridge 12:00.0\n"
      "        bridge 13:00.0\n"
      "          bridge 14:00.0\n");
  CHECK(at(graph, "10:01.0").port == BridgePort::kRoot);
  CHECK(at(graph, "11:00.0").port == BridgePort::kUpstream);
  CHECK(at(graph, "12:00.0").port == BridgePort::kDownstream);
  CHECK(at(graph, "13:00.0").port == BridgePort::kUpstream);
  CHECK(at(graph, "14:00.0").port == BridgePort::kDownstream);
}

TEST_CASE("node: labels") {
  const Graph graph = make_machine(
      "package 0\n"
      " numa 0\n"
      "  host 0000:10\n"
      "   root 10:01.0\n    gpu 11:00.0\n    nic 12:00.0 mlx5_0\n    nic 13:00.0\n"
      "    other 14:00.0\n"
      "other\n");
  std::vector<std::string> labels;
  for (const Node& node : graph.nodes()) labels.push_back(label(node));
  CHECK(labels == std::vector<std::string>{"machine", "package 0", "NUMA node 0",
                                           "host bridge 0000:10:00.0", "device",
                                           "bridge 0000:10:01.0", "GPU 0000:11:00.0", "mlx5_0",
                                           "NIC 0000:13:00.0", "device 0000:14:00.0"});
}

TEST_CASE("role: it follows from class, vendor and RDMA device") {
  Node node;
  const auto role = [&](std::uint32_t pci_class, std::uint16_t vendor, const char* rdma) {
    node.pci_class = pci_class;
    node.vendor = vendor;
    node.os_devices.clear();
    if (rdma != nullptr) node.os_devices = {{OsKind::kRdma, rdma}};
    return guess_role(node);
  };
  CHECK(role(0x030200, 0x10de, nullptr) == DeviceRole::kGpu);
  CHECK(role(0x120000, 0x1002, nullptr) == DeviceRole::kGpu);
  CHECK(role(0x038000, 0x1002, nullptr) == DeviceRole::kGpu);
  CHECK(role(0x030000, 0x10de, nullptr) == DeviceRole::kGpu);
  CHECK(role(0x030000, 0x1a03, nullptr) == DeviceRole::kOther);  // a server's console
  CHECK(role(0x040300, 0x10de, nullptr) == DeviceRole::kOther);  // a GPU's sound
  CHECK(role(0x020700, 0x15b3, "mlx5_0") == DeviceRole::kRdmaNic);
  CHECK(role(0x020000, 0x15b3, "mlx5_0") == DeviceRole::kRdmaNic);
  CHECK(role(0, 0, "rxe0") == DeviceRole::kRdmaNic);
  CHECK(role(0x020700, 0x15b3, nullptr) == DeviceRole::kOther);  // no driver
  CHECK(role(0x020000, 0x8086, nullptr) == DeviceRole::kOther);  // plain Ethernet
  CHECK(role(0x0b4000, 0x8086, "scif0") == DeviceRole::kOther);  // a coprocessor's link
  CHECK(role(0, 0, "scif0") == DeviceRole::kOther);
  CHECK(role(0x030000, 0x1002, nullptr) == DeviceRole::kGpu);
  node.device = 0x73bf;  // Radeon RX 6800
  CHECK(role(0x030000, 0x1002, nullptr) == DeviceRole::kGpu);
  node.device = 0x515e;  // ES1000
  CHECK(role(0x030000, 0x1002, nullptr) == DeviceRole::kOther);
}
