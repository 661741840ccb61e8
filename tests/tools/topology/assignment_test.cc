// SPDX-License-Identifier: Apache-2.0
//
// Tests of which NICs each GPU of a machine gets.
#include "topology/assignment.h"

#include "tests/support/catch.h"
#include "tests/tools/topology/answers.h"
#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"

using namespace beeline::topology;

namespace {

Lines nics_of(const std::string& text) { return nics_of(make_machine(text)); }

Lines standby_of(const Graph& graph) {
  Lines lines;
  for (const GpuAssignment& given : assign(graph).gpus) {
    lines.push_back(labels_of(graph, given.standby));
  }
  return lines;
}

}  // namespace

TEST_CASE("assignment: a NIC for each GPU") {
  const Graph graph = make_machine(machines::one_nic_each());
  CHECK(nics_of(graph) == Lines{"PIX mlx5_0", "PIX mlx5_1", "PIX mlx5_2", "PIX mlx5_3",
                                "PIX mlx5_4", "PIX mlx5_5", "PIX mlx5_6", "PIX mlx5_7"});
  CHECK(spares_of(graph).empty());
  CHECK(assign(graph).gpus[3].reason == "the nearest NIC (PIX)");
}

TEST_CASE("assignment: the names of NICs do not matter") {
  CHECK(nics_of(machines::one_nic_each_reversed()) ==
        Lines{"PIX mlx5_7", "PIX mlx5_6", "PIX mlx5_5", "PIX mlx5_4", "PIX mlx5_3", "PIX mlx5_2",
              "PIX mlx5_1", "PIX mlx5_0"});
}

TEST_CASE("assignment: equally good NICs are distributed in order") {
  const Graph graph = make_machine(machines::tied_in_pairs());
  CHECK(nics_of(graph) == Lines{"PIX mlx5_0", "PIX mlx5_1", "PIX mlx5_2", "PIX mlx5_3",
                                "PIX mlx5_4", "PIX mlx5_5", "PIX mlx5_6", "PIX mlx5_7"});
  CHECK(assign(graph).gpus[0].reason == "1 of 2 equally near NICs (PIX), divided among 2 GPUs");
}

TEST_CASE("assignment: two GPUs share the NIC of their board") {
  const Graph graph = make_machine(machines::two_gpus_a_nic());
  CHECK(nics_of(graph) == Lines{"PXB mlx5_0", "PXB mlx5_0", "PXB mlx5_1", "PXB mlx5_1",
                                "PXB mlx5_2", "PXB mlx5_2", "PXB mlx5_3", "PXB mlx5_3"});
  CHECK(assign(graph).gpus[0].reason == "the nearest NIC (PXB); it serves 2 GPUs");
  CHECK(nics_of(machines::sixteen_gpus())[15] == "PIX mlx5_7");
}

TEST_CASE("assignment: one NIC serves all") {
  const Graph graph = make_machine(machines::one_nic_for_all());
  CHECK(nics_of(graph) == Lines{"NODE mlx5_0", "NODE mlx5_0", "NODE mlx5_0", "NODE mlx5_0",
                                "SYS mlx5_0", "SYS mlx5_0", "SYS mlx5_0", "SYS mlx5_0"});
  CHECK(assign(graph).gpus[7].reason ==
        "the nearest NIC (SYS); it serves 8 GPUs; no NIC is known to be on the GPU's NUMA node");
}

TEST_CASE("assignment: groups of four") {
  const Lines lines = nics_of(machines::four_nics_each());
  REQUIRE(lines.size() == 8);
  CHECK(lines[0] == "PIX rdmap0 rdmap1 rdmap2 rdmap3");
  CHECK(lines[7] == "PIX rdmap28 rdmap29 rdmap30 rdmap31");
  CHECK(assign(make_machine(machines::four_nics_each())).gpus[0].reason ==
        "the 4 nearest NICs (PIX)");
}

TEST_CASE("assignment: NICs beyond the limit stand by") {
  const Graph graph = make_machine(machines::four_nics_each());
  CHECK(nics_of(graph, {.max_nics_per_gpu = 2})[1] == "PIX rdmap4 rdmap5");
  const Assignment result = assign(graph, {.max_nics_per_gpu = 2});
  CHECK(result.spares.size() == 16);
  CHECK(label(graph[result.gpus[1].standby[0]]) == "rdmap6");
}

TEST_CASE("assignment: everything below one root port") {
  CHECK(nics_of(machines::one_root_port()) ==
        Lines{"PXB mlx5_0", "PXB mlx5_1", "PXB mlx5_0", "PXB mlx5_1"});
}

TEST_CASE("assignment: all NICs on the far socket are shared evenly") {
  const Graph graph = make_machine(machines::far_socket());
  CHECK(nics_of(graph) == Lines{"SYS mlx5_0", "SYS mlx5_1", "SYS mlx5_0", "SYS mlx5_1"});
}

TEST_CASE("assignment: in a flat virtual machine GPUs and NICs are paired as NCCL does") {
  CHECK(nics_of(machines::flat_virtual_machine()) ==
        Lines{"PHB mlx5_0", "PHB mlx5_2", "PHB mlx5_1", "PHB mlx5_3"});
}

TEST_CASE("assignment: a GPU gets both ports of an adapter") {
  CHECK(nics_of(machines::dual_port()) == Lines{"NODE mlx5_0 mlx5_1", "NODE mlx5_2 mlx5_3"});
}

TEST_CASE("assignment: second ports are taken last") {
  const std::string gpus =
      "numa 0\n  host 0000:01\n    gpu 01:01.0\n    gpu 01:02.0\n    gpu 01:03.0\n";
  const std::string adapters =
      "  host 0000:30\n    root 30:01.0\n      nic 31:00.0 mlx5_0\n      nic 31:00.1 mlx5_1\n"
      "  host 0000:40\n    root 40:01.0\n      nic 41:00.0 mlx5_2\n      nic 41:00.1 mlx5_3\n";
  const Graph graph = make_machine(gpus + adapters);
  CHECK(nics_of(graph) == Lines{"NODE mlx5_0", "NODE mlx5_1", "NODE mlx5_2"});
  CHECK(spares_of(graph) == Lines{"mlx5_3: left over: there are too few for one more per GPU"});
  // Two GPUs that may have one NIC each take two adapters.
  CHECK(
      nics_of(make_machine("numa 0\n  host 0000:01\n    gpu 01:01.0\n    gpu 01:02.0\n" + adapters),
              {.max_nics_per_gpu = 1}) == Lines{"NODE mlx5_0", "NODE mlx5_2"});
}

TEST_CASE("assignment: a GPU with a choice leaves a NIC to the GPU that has only this one") {
  const Graph graph = make_machine(
      "host 0000:10\n root 10:01.0\n  up 11:00.0\n"
      "   down 12:00.0\n    up 20:00.0\n"
      "     down 21:00.0\n      gpu 22:00.0\n"
      "     down 21:01.0\n      nic 23:00.0 mlx5_0\n"
      "   down 12:01.0\n    up 30:00.0\n"
      "     down 31:00.0\n      gpu 32:00.0\n"
      "   down 12:02.0\n    nic 40:00.0 mlx5_1\n");
  CHECK(nics_of(graph) == Lines{"PIX mlx5_0", "PXB mlx5_1"});
}

TEST_CASE("assignment: NICs that only some GPUs may have are left to them") {
  const Graph graph = make_machine(
      "host 0000:10\n root 10:01.0\n  up 11:00.0\n"
      "   down 12:00.0\n    gpu 13:00.0\n"
      "   down 12:01.0\n    nic 14:00.0 mlx5_0\n"
      "   down 12:02.0\n    nic 15:00.0 mlx5_1\n"
      "   down 12:03.0\n    up 20:00.0\n     down 21:00.0\n      gpu 22:00.0\n"
      "   down 12:04.0\n    up 30:00.0\n"
      "     down 31:00.0\n      nic 32:00.0 mlx5_2\n"
      "     down 31:01.0\n      nic 33:00.0 mlx5_3\n");
  CHECK(nics_of(graph) == Lines{"PIX mlx5_0 mlx5_1", "PXB mlx5_2 mlx5_3"});
}

TEST_CASE("assignment: virtual functions and their physical one are one NIC") {
  const Graph graph = make_machine(machines::virtual_functions());
  CHECK(nics_of(graph) == Lines{"PHB mlx5_0", "PHB mlx5_3"});
  CHECK(spares_of(graph) ==
        Lines{"mlx5_1: same ports or bond as mlx5_0", "mlx5_2: same ports or bond as mlx5_0"});
  CHECK(
      assign(graph).gpus[0].reason ==
      "1 of 2 equally near NICs (PHB), divided among 2 GPUs; mlx5_0 has the same ports or bond as "
      "mlx5_1, mlx5_2");
  // Where the physical function may not be used, a virtual one stands for it.
  const AssignOptions only_virtual{.nics = {{graph.nics()[2], graph.nics()[1]}}};
  CHECK(nics_of(graph, only_virtual) == Lines{"PHB mlx5_1", "PHB mlx5_1"});
}

TEST_CASE("assignment: members of a bond are one NIC") {
  const Graph graph = make_machine(machines::bonded());
  CHECK(nics_of(graph) == Lines{"PHB mlx5_bond_0", "PHB mlx5_2"});
  CHECK(spares_of(graph) == Lines{"mlx5_1: same ports or bond as mlx5_bond_0"});
}

TEST_CASE("assignment: a slow NIC is not used, however near it is") {
  const std::string text =
      "numa 0\n"
      " host 0000:00\n"
      "  switch 01:00.0 max=32x16\n"
      "   gpu 02:00.0 max=32x16\n"
      "   nic 03:00.0 mlx5_0 max=32x16 speed=25000\n"
      "  nic 04:00.0 mlx5_1 max=32x16 speed=400000\n"
      "  nic 05:00.0 mlx5_2 max=32x16 ";
  const Graph graph = make_machine(text + "speed=400000\n");
  CHECK(nics_of(graph) == Lines{"PHB mlx5_1 mlx5_2"});
  CHECK(assign(graph).gpus[0].reason ==
        "the 2 fastest NICs (PHB); not mlx5_0, which is nearer but slower");
  CHECK(spares_of(graph) == Lines{"mlx5_0: slower than NICs that are farther away"});
  // Half as fast is slower, too.
  const Graph slower = make_machine(text + "speed=200000\n");
  CHECK(nics_of(slower) == Lines{"PHB mlx5_1"});
  CHECK(assign(slower).gpus[0].reason ==
        "the fastest NIC (PHB); not mlx5_0, which is nearer but slower; not mlx5_2, which is as "
        "near but slower");
  CHECK(standby_of(slower) == Lines{"mlx5_2 mlx5_0"});
  // A NIC of unknown speed is not called slow.
  CHECK(nics_of(text + "\n") == Lines{"PHB mlx5_1 mlx5_2"});
}

TEST_CASE("assignment: where the GPU's own link is the bottleneck, the nearest NIC is as fast") {
  CHECK(nics_of("numa 0\n"
                " host 0000:00\n"
                "  switch 01:00.0 max=32x16\n"
                "   gpu 02:00.0 max=8x8\n"
                "   nic 03:00.0 mlx5_0 max=32x16 speed=100000\n"
                "  nic 04:00.0 mlx5_1 max=32x16 speed=400000\n") == Lines{"PIX mlx5_0"});
}

TEST_CASE("assignment: NICs behind several switches are equal, as for NCCL") {
  const std::string text =
      "host 0000:00\n"
      " switch 01:00.0\n"
      "  switch 02:00.0\n"
      "   switch 03:00.0\n    gpu 04:00.0\n"
      "   nic 05:00.0 near speed=100000\n"
      "  nic 06:00.0 top speed=100000\n";
  CHECK(nics_of(text) == Lines{"PXB near top"});
}

TEST_CASE("assignment: a NIC whose ports are down is not used, unless it is given") {
  const Graph graph = make_machine(
      "host 0000:00\n"
      " switch 01:00.0\n  gpu 02:00.0\n  nic 03:00.0 mlx5_0 speed=100000 state=down\n"
      " nic 04:00.0 mlx5_1 speed=100000\n");
  CHECK(nics_of(graph) == Lines{"PHB mlx5_1"});
  CHECK(spares_of(graph) == Lines{"mlx5_0: its ports are down"});
  CHECK(nics_of(graph, {.nics = {{graph.nics()[0]}}}) == Lines{"PIX mlx5_0"});
}

TEST_CASE("assignment: NICs are distributed by the numbers of the GPUs, as in NCCL") {
  CHECK(nics_of("host 0000:00\n gpu 01:00.0 dev=1\n gpu 02:00.0 dev=0\n"
                " nic 03:00.0 mlx5_0\n nic 04:00.0 mlx5_1\n") == Lines{"PHB mlx5_1", "PHB mlx5_0"});
}

TEST_CASE("assignment: machines without GPUs or without NICs") {
  CHECK(assign(make_machine("")).gpus.empty());
  const Graph no_nic = make_machine("host 0000:10\n  gpu 10:01.0\n  other 10:02.0 eth0\n");
  REQUIRE(assign(no_nic).gpus.size() == 1);
  CHECK(assign(no_nic).gpus[0].nics.empty());
  CHECK(assign(no_nic).gpus[0].reason == "there is no RDMA NIC");
  CHECK(spares_of(make_machine("host 0000:10\n  nic 10:01.0 mlx5_0\n")) ==
        Lines{"mlx5_0: there is no GPU"});
  CHECK(spares_of(
            make_machine("host 0000:10\n switch 10:01.0\n  gpu 11:00.0\n  nic 12:00.0 mlx5_0\n"
                         " nic 20:02.0 mlx5_1\n")) == Lines{"mlx5_1: every GPU has a nearer NIC"});
}

TEST_CASE("assignment: the reason says if the NUMA node is unknown") {
  const Graph graph = make_machine(
      "numa 0\nnuma 1\nhost 0000:10\n  gpu 10:01.0\nhost 0000:20\n  nic 20:01.0 mlx5_0\n");
  CHECK(assign(graph).gpus[0].reason == "the nearest NIC (SYS); the GPU's NUMA node is unknown");
}

TEST_CASE("standby: the nearest first, each GPU with another") {
  const Lines lines = standby_of(make_machine(machines::one_nic_each()));
  REQUIRE(lines.size() == 8);
  CHECK(lines[0] == "mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7");
  CHECK(lines[3] == "mlx5_0 mlx5_1 mlx5_2 mlx5_4 mlx5_5 mlx5_6 mlx5_7");
  CHECK(lines[6] == "mlx5_7 mlx5_4 mlx5_5 mlx5_0 mlx5_1 mlx5_2 mlx5_3");
}

TEST_CASE("standby: GPUs that lose one NIC go to different ones") {
  const Graph graph = make_machine(
      "numa 0\n  host 0000:10\n    root 10:01.0\n"
      "      up 11:00.0\n        down 12:00.0\n          gpu 13:00.0\n"
      "        down 12:01.0\n          gpu 14:00.0\n"
      "        down 12:02.0\n          nic 15:00.0 mlx5_0\n"
      "    nic 10:11.0 mlx5_1\n    nic 10:12.0 mlx5_2\n");
  CHECK(standby_of(graph) == Lines{"mlx5_1 mlx5_2", "mlx5_2 mlx5_1"});
}

TEST_CASE("standby: the other port of the same adapter comes after other adapters") {
  const Graph graph = make_machine(
      "numa 0\n  host 0000:10\n    gpu 10:01.0\n"
      "  host 0000:20\n    nic 21:00.0 mlx5_0\n    nic 21:00.1 mlx5_1\n"
      "  host 0000:30\n    nic 31:00.0 mlx5_2\n");
  const Assignment result = assign(graph, {.max_nics_per_gpu = 1});
  CHECK(labels_of(graph, result.gpus[0].nics) == "mlx5_0");
  CHECK(labels_of(graph, result.gpus[0].standby) == "mlx5_2 mlx5_1");
}

TEST_CASE("reason: it does not claim that a NUMA node with NICs has none") {
  const std::string machine =
      "numa 0\n host 0000:10\n  root 10:01.0\n   gpu 11:00.0 now=32x16\n"
      "  root 10:02.0\n   nic 12:00.0 mlx5_0 now=8x8 speed=25000\n"
      "numa 1\n host 0000:80\n  root 80:02.0\n   nic 82:00.0 mlx5_1 now=32x16 speed=400000\n";
  const Assignment assignment = assign(make_machine(machine));
  CHECK(assignment.gpus[0].distance == Distance::kSys);
  CHECK(assignment.gpus[0].reason.find("no NIC is known") == std::string::npos);
}
