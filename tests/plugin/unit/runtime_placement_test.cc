// SPDX-License-Identifier: Apache-2.0
//
// The NICs' places in the topology of the machine, and the findings about them.
#include "plugin/runtime/placement.h"

#include "tests/support/catch.h"
#include "tests/support/found.h"
#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"
#include "topology/distance.h"

using namespace beeline;
using namespace beeline::topology;

namespace {

Device device_named(const char* ibdev, std::uint8_t port = 1) {
  Device device;
  device.ibdev = ibdev;
  device.port = port;
  return device;
}

std::vector<NodeIndex> all_nics(const Graph& graph) {
  return {graph.nics().begin(), graph.nics().end()};
}

std::optional<beeline::Finding> hidden_tree_of(const std::string& machine) {
  const Graph graph = make_machine(machine);
  return hidden_tree(graph, all_nics(graph));
}

}  // namespace

TEST_CASE("placement: devices are found by name, two ports of a device once", "[unit][runtime]") {
  const Graph graph = make_machine(
      "host 0000:00\n"
      " nic 01:00.0 mlx5_0\n"
      " nic 02:00.0 mlx5_1\n"
      "soft rxe0\n");
  const std::vector<Device> devices = {device_named("mlx5_1"), device_named("mlx5_1", 2),
                                       device_named("rxe0"), device_named("gone")};
  std::vector<std::string> names;
  for (const NodeIndex node : nodes_of(graph, devices)) names.push_back(label(graph[node]));
  CHECK(names == std::vector<std::string>{"mlx5_1", "rxe0"});
}

TEST_CASE("placement: the processors near the NICs in use", "[unit][runtime]") {
  GraphParts parts = topology::read_machine(
      "numa 0\n host 0000:00\n  nic 01:00.0 mlx5_0\n"
      "numa 1\n host 0000:80\n  nic 81:00.0 mlx5_1\n"
      "soft rxe0\n");
  for (Node& node : parts.nodes) {
    if (node.kind == NodeKind::kNumaNode) node.cpus = node.number == 0 ? "0-3" : "4-7";
  }
  const Graph graph = *Graph::make(parts);
  const auto near = [&](const char* ibdev) {
    return cpus_near(graph, nodes_of(graph, std::vector<Device>{device_named(ibdev)}));
  };
  CHECK(near("mlx5_0") == "0-3");
  CHECK(near("mlx5_1") == "4-7");
  CHECK(near("rxe0").empty());
  CHECK(cpus_near(graph, all_nics(graph)) == "0-3,4-7");
}

TEST_CASE("placement: a PCI tree counts as hidden if no device is behind a bridge",
          "[unit][runtime]") {
  CHECK(has_hidden_tree(make_machine(machines::flat_virtual_machine())));
  CHECK_FALSE(has_hidden_tree(make_machine(machines::one_nic_each())));
}

TEST_CASE("placement: a machine that hides its tree needs a description, and others do not",
          "[unit][runtime]") {
  const auto hidden = hidden_tree_of(machines::flat_virtual_machine());
  REQUIRE(hidden);
  CHECK(hidden->id == "hidden-tree");
  CHECK(hidden->severity == Severity::kNote);
  CHECK(describe(*hidden) ==
        "this machine hides its PCI tree, as virtual machines do; NCCL cannot tell which NIC is "
        "near which GPU. To fix it: give NCCL the provider's description (NCCL_TOPO_FILE)");
  CHECK_FALSE(hidden_tree_of(machines::one_nic_each()));
  CHECK_FALSE(hidden_tree_of(machines::far_socket()));
  CHECK_FALSE(hidden_tree(make_machine(machines::flat_virtual_machine()), {}));
  CHECK_FALSE(hidden_tree_of("host 0000:00\n nic 01:00.0 mlx5_0\n"));
}

TEST_CASE("placement: a slow link of a NIC in use is named", "[unit][runtime]") {
  const Graph graph = make_machine(
      "host 0000:00\n"
      " root 00:01.0 max=32x16\n  nic 01:00.0 mlx5_0 now=16x8 max=32x16\n"
      " root 00:02.0 max=32x16\n  nic 02:00.0 mlx5_1 now=32x16 max=32x16\n");
  const test::Found found(slow_links(graph, all_nics(graph)));
  CHECK(found.size() == 1);
  CHECK(found.has("slow-link", Severity::kWarning, "mlx5_0"));
  CHECK(found.has("the PCIe link of mlx5_0 is slow: Gen4 x8, could be Gen5 x16. To fix it: "));
  CHECK(slow_links(graph, {graph.nics()[1]}).empty());
}

TEST_CASE("placement: a slow link of a GPU, or of a switch on the way, is named",
          "[unit][runtime]") {
  const Graph graph = make_machine(
      "host 0000:00\n"
      " root 00:01.0 max=32x16\n"
      "  up 01:00.0 now=16x16 max=32x16\n"
      "   down 02:00.0 max=32x16\n    gpu 03:00.0 now=32x8 max=32x16\n"
      "   down 02:01.0 max=32x16\n    nic 04:00.0 mlx5_0 now=32x16 max=32x16\n");
  const test::Found found(slow_links(graph, all_nics(graph)));
  CHECK(found.size() == 2);
  CHECK(found.has("the PCIe link of bridge 0000:01:00.0 is slow: Gen4 x16, could be Gen5"));
  CHECK(found.has("the PCIe link of GPU 0000:03:00.0 is slow: Gen5 x8, could be Gen5 x16"));
}
