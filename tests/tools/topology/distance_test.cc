// SPDX-License-Identifier: Apache-2.0
//
// Tests of each distance, at its limits.
#include "topology/distance.h"

#include "tests/support/catch.h"
#include "tests/tools/topology/machine_text.h"

using namespace beeline::topology;

namespace {

std::string only_distance(const std::string& text) {
  const Graph graph = make_machine(text);
  REQUIRE(graph.gpus().size() == 1);
  REQUIRE(graph.nics().size() == 1);
  return to_string(Distances(graph).between(graph.gpus()[0], graph.nics()[0]));
}

}  // namespace

TEST_CASE("distance: a device to itself") {
  const Graph graph = make_machine("host 0000:10\n  gpu 10:01.0\n");
  CHECK(Distances(graph).between(graph.gpus()[0], graph.gpus()[0]) == Distance::kLoc);
}

TEST_CASE("distance: two ports of a switch are one switch") {
  CHECK(only_distance("host 0000:10\n root 10:01.0\n  up 11:00.0\n"
                      "   down 12:00.0\n    gpu 13:00.0\n"
                      "   down 12:01.0\n    nic 14:00.0 mlx5_0\n") == "PIX");
}

TEST_CASE("distance: functions behind one port") {
  CHECK(only_distance("host 0000:10\n root 10:01.0\n"
                      "  gpu 13:00.0\n  nic 13:00.1 mlx5_0\n") == "PIX");
}

TEST_CASE("distance: a switch behind a switch") {
  CHECK(only_distance("host 0000:10\n root 10:01.0\n  up 11:00.0\n"
                      "   down 12:00.0\n    up 13:00.0\n     down 14:00.0\n      gpu 15:00.0\n"
                      "   down 12:01.0\n    nic 16:00.0 mlx5_0\n") == "PXB");
}

TEST_CASE("distance: a switch in one node, as NCCL draws it") {
  CHECK(only_distance("numa 0\n switch 10:00.0\n  gpu 11:00.0\n  nic 12:00.0 mlx5_0\n") == "PIX");
  CHECK(only_distance("numa 0\n switch 10:00.0\n"
                      "  switch 11:00.0\n   gpu 12:00.0\n"
                      "  switch 13:00.0\n   nic 14:00.0 mlx5_0\n") == "PXB");
}

TEST_CASE("distance: root ports of one host bridge") {
  CHECK(only_distance("host 0000:10\n root 10:01.0\n  gpu 11:00.0\n"
                      " root 10:02.0\n  nic 12:00.0 mlx5_0\n") == "PHB");
}

TEST_CASE("distance: devices on the root bus itself") {
  CHECK(only_distance("host 0000:10\n gpu 10:01.0\n nic 10:02.0 mlx5_0\n") == "PHB");
}

TEST_CASE("distance: host bridges of one NUMA node, and of two") {
  CHECK(only_distance("numa 0\n host 0000:10\n  gpu 10:01.0\n host 0000:20\n"
                      "  nic 20:01.0 mlx5_0\nnuma 1\n") == "NODE");
  CHECK(only_distance("numa 0\n host 0000:10\n  gpu 10:01.0\nnuma 1\n host 0000:20\n"
                      "  nic 20:01.0 mlx5_0\n") == "SYS");
}

TEST_CASE("distance: NUMA nodes that are not known") {
  const std::string devices =
      "host 0000:10\n  gpu 10:01.0\n"
      "host 0000:20\n  nic 20:01.0 mlx5_0\n";
  CHECK(only_distance(devices) == "NODE");                      // nothing speaks against it
  CHECK(only_distance(devices + "numa 0\n") == "NODE");         // there is no other
  CHECK(only_distance(devices + "numa 0\nnuma 1\n") == "SYS");  // who knows
  CHECK(only_distance(devices + "package 0\npackage 1\n") == "SYS");
  CHECK(only_distance("package 0\n host 0000:10\n  gpu 10:01.0\n"
                      " host 0000:20\n  nic 20:01.0 mlx5_0\npackage 1\n") == "NODE");
  CHECK(only_distance("package 0\n host 0000:10\n  gpu 10:01.0\n"
                      "package 1\n host 0000:20\n  nic 20:01.0 mlx5_0\n") == "SYS");
}

TEST_CASE("distance: another NUMA node of the package is nearer than another package") {
  const Graph graph = make_machine(
      "package 0\n numa 0\n  host 0000:10\n   gpu 10:01.0\n"
      " numa 1\n  host 0000:20\n   nic 20:01.0 mlx5_0\n"
      "package 1\n numa 2\n  host 0000:30\n   nic 30:01.0 mlx5_1\n");
  const Distances places(graph);
  const NodeIndex gpu = graph.gpus()[0];
  CHECK(places.between(gpu, graph.nics()[0]) == Distance::kSys);
  CHECK(places.between(gpu, graph.nics()[1]) == Distance::kSys);
  CHECK(places.rank(gpu, graph.nics()[0]) < places.rank(gpu, graph.nics()[1]));
}

TEST_CASE("distance: if package and NUMA node disagree, the package of the NUMA node counts") {
  const Graph graph = make_machine(
      "package 0\n numa 0\n  host 0000:20\n   nic 20:01.0 mlx5_0\n"
      " host 0000:10 numa=1\n  gpu 10:01.0\n"
      "package 1\n numa 1\n numa 2\n  host 0000:30\n   nic 30:01.0 mlx5_1\n");
  const Distances places(graph);
  const NodeIndex gpu = graph.gpus()[0];
  CHECK(places.rank(gpu, graph.nics()[1]) < places.rank(gpu, graph.nics()[0]));
}

TEST_CASE("distance: a soft device without PCI") {
  CHECK(only_distance("host 0000:10\n gpu 10:01.0\nsoft rxe0\n") == "NODE");
  CHECK(only_distance("numa 0\nnuma 1\n host 0000:10\n  gpu 10:01.0\nsoft rxe0\n") == "SYS");
}

TEST_CASE("distance: NCCL's names") {
  CHECK(std::string(nccl_name(Distance::kNode)) == "PHB");
  CHECK(std::string(nccl_name(Distance::kPhb)) == "PHB");
  CHECK(std::string(nccl_name(Distance::kPxb)) == "PXB");
  CHECK(std::string(nccl_name(Distance::kSys)) == "SYS");
}
