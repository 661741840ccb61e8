// SPDX-License-Identifier: Apache-2.0
//
// Tests of the NICs that NCCL itself chooses. The expected results were derived by hand from NCCL's
// rules.
#include "topology/nccl_choice.h"

#include <cstdio>

#include "tests/support/catch.h"
#include "tests/tools/topology/answers.h"
#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"

using namespace beeline::topology;

namespace {

// "PIX 12 mlx5_0", followed in brackets by equally good NICs, if there are more.
std::string line_of(const Graph& graph, const NcclChoice& choice) {
  char rate[32];
  std::snprintf(rate, sizeof(rate), " %g ", choice.gigabytes_per_second);
  std::string line = to_string(choice.path_type) + (rate + labels_of(graph, choice.nics));
  if (choice.equals.size() > choice.nics.size()) {
    line += " (of " + labels_of(graph, choice.equals) + ")";
  }
  if (choice.through != kNoNode) line += " through " + label(graph[choice.through]);
  return line;
}

Lines chosen(const std::string& text) {
  const Graph graph = make_machine(text);
  Lines lines;
  for (const NcclChoice& choice : nccl_choices(graph)) lines.push_back(line_of(graph, choice));
  return lines;
}

}  // namespace

TEST_CASE("nccl choice: bandwidth takes precedence over distance") {
  CHECK(chosen("numa 0\n"
               " host 0000:00\n"
               "  switch 01:00.0 max=32x16\n"
               "   gpu 02:00.0 max=32x16\n"
               "   nic 03:00.0 slow max=16x8 speed=25000\n"
               "  nic 04:00.0 mlx5_0 max=32x16 speed=400000\n"
               "  nic 05:00.0 mlx5_1 max=32x16 speed=400000\n") == Lines{"PHB 48 mlx5_0 mlx5_1"});
}

TEST_CASE("nccl choice: the slowest link of the path decides, then the distance") {
  // The GPU's own link carries no more than the slow NIC.
  CHECK(chosen("numa 0\n"
               " host 0000:00\n"
               "  switch 01:00.0 max=8x8\n"
               "   gpu 02:00.0 max=8x8\n"
               "   nic 03:00.0 mlx5_0 max=8x8 speed=100000\n"
               "  nic 04:00.0 mlx5_1 max=32x16 speed=400000\n") == Lines{"PIX 6 mlx5_0"});
}

TEST_CASE("nccl choice: an unknown link counts as Gen3 with 16 lanes") {
  CHECK(
      chosen("numa 0\n host 0000:00\n  switch 01:00.0\n   gpu 02:00.0\n   nic 03:00.0 mlx5_0\n") ==
      Lines{"PIX 12 mlx5_0"});
  CHECK(chosen("numa 0\n host 0000:00\n  switch 01:00.0\n   gpu 02:00.0\n"
               "   nic 03:00.0 mlx5_0 speed=400000\n") == Lines{"PIX 12 mlx5_0"});
}

TEST_CASE("nccl choice: without a description of ports, a NIC is as fast as its link") {
  const std::string machine =
      "numa 0\n host 0000:00\n  gpu 01:00.0 max=32x16\n"
      "  nic 02:00.0 slow max=8x4";
  CHECK(chosen(machine + "\n  nic 03:00.0 fast max=32x16\n") == Lines{"PHB 48 fast"});
  // A port without a speed has NCCL's usual one, and the two are equal.
  CHECK(chosen(machine + " speed=0\n  nic 03:00.0 fast max=32x16 speed=0\n") ==
        Lines{"PHB 1.25 slow fast"});
}

TEST_CASE("nccl choice: devices without a NUMA node are near one another") {
  CHECK(chosen("numa 0\nnuma 1\n"
               "host 0000:00\n gpu 00:01.0\nhost 0000:10\n nic 10:01.0 a speed=100000\n") ==
        Lines{"PHB 12 a"});
}

TEST_CASE("nccl choice: equal NICs are distributed by the numbers of the GPUs") {
  const std::string nics =
      "  nic 11:00.0 a speed=100000\n  nic 12:00.0 b speed=100000\n"
      "  nic 13:00.0 c speed=100000\n  nic 14:00.0 d speed=100000\n";
  const std::string root = "numa 0\n host 0000:00\n";
  // The bits are reversed, so that neighbors take distant NICs.
  CHECK(chosen(root + "  gpu 01:00.0\n  gpu 02:00.0\n  gpu 03:00.0\n  gpu 04:00.0\n" + nics) ==
        Lines{"PHB 12 a (of a b c d)", "PHB 12 c (of a b c d)", "PHB 12 b (of a b c d)",
              "PHB 12 d (of a b c d)"});
  // CUDA's order differs from that of the bus.
  CHECK(chosen(root + "  gpu 01:00.0 dev=1\n  gpu 02:00.0 dev=0\n" + nics) ==
        Lines{"PHB 12 c d (of a b c d)", "PHB 12 a b (of a b c d)"});
}

TEST_CASE("nccl choice: the bandwidth between processors depends on their model") {
  const auto far_nic = [](const std::string& cpu) {
    return "numa 0 cpu=" + cpu +
           "\n"
           " host 0000:00\n  gpu 01:00.0 max=16x16\n  nic 02:00.0 slow max=16x16 speed=100000\n"
           "numa 1 cpu=" +
           cpu +
           "\n"
           " host 0000:80\n  nic 81:00.0 fast max=16x16 speed=200000\n";
  };
  CHECK(chosen(far_nic("GenuineIntel/6/106")) == Lines{"PHB 12.5 slow"});
  CHECK(chosen(far_nic("AuthenticAMD/25/1")) == Lines{"SYS 16 fast"});
  CHECK(chosen(far_nic("GenuineIntel/6/143")) == Lines{"SYS 22 fast"});
}

TEST_CASE("nccl choice: through a GPU that is nearer, over NVLink") {
  const std::string machine =
      "numa 0\n"
      " host 0000:00\n"
      "  switch 01:00.0 max=16x16\n"
      "   gpu 02:00.0 max=16x16 sm=80 nvlink=12*switch\n"
      "   nic 03:00.0 mlx5_0 max=16x16 speed=200000\n"
      "numa 1\n"
      " host 0000:80\n"
      "  gpu 81:00.0 max=16x16 sm=80 ";
  CHECK(chosen(machine + "nvlink=12*switch\n") ==
        Lines{"PIX 24 mlx5_0", "PXN 24 mlx5_0 through GPU 0000:02:00.0"});
  CHECK(chosen(machine + "\n") == Lines{"PIX 24 mlx5_0", "SYS 10 mlx5_0"});
}

TEST_CASE(
    "nccl choice: a NIC that two GPUs share is the one's that takes it in an earlier channel") {
  const std::string fast = " max=16x16 sm=80 nvlink=12*switch\n";
  CHECK(chosen("numa 0\n"
               " host 0000:00\n"
               "  switch 01:00.0 max=16x16\n"
               "   gpu 02:00.0 dev=0" +
               fast + "   gpu 03:00.0 dev=3" + fast +
               "   nic 04:00.0 a max=16x16 speed=200000\n"
               "   nic 05:00.0 b max=16x16 speed=200000\n"
               "   nic 06:00.0 c max=16x16 speed=200000\n"
               "numa 1\n"
               " host 0000:80\n"
               "  gpu 81:00.0 dev=1" +
               fast) == Lines{"PIX 24 a b (of a b c)", "PIX 24 b c (of a b c)",
                              "PXN 24 b c (of a b c) through GPU 0000:03:00.0"});
}

TEST_CASE("nccl choice: over C2C and the processor") {
  CHECK(chosen("numa 0\n"
               " host 0000:00\n  gpu 01:00.0 max=2.5x1 c2c=200000\n"
               " host 0000:40\n  nic 41:00.0 mlx5_0 max=32x16 speed=400000\n") ==
        Lines{"P2C 48 mlx5_0"});
}

TEST_CASE("nccl choice: a Broadcom switch with two levels counts as one") {
  const auto machine = [](const std::string& low) {
    return "numa 0\n host 0000:00\n"
           "  switch 01:00.0 ids=1000:c030:1000:0000\n"
           "   nic 02:00.0 top speed=100000\n"
           "   switch 03:00.0 ids=" +
           low +
           "\n"
           "    gpu 04:00.0\n    nic 05:00.0 low speed=100000\n";
  };
  CHECK(chosen(machine("1000:c030:1000:1000")) == Lines{"PIX 12 top low"});
  CHECK(chosen(machine("1000:c030:1d9b:1000")) == Lines{"PIX 12 low"});
}

TEST_CASE("nccl choice: the number of switches beyond one does not matter") {
  CHECK(chosen("numa 0\n host 0000:00\n"
               "  switch 01:00.0\n"
               "   switch 02:00.0\n"
               "    switch 03:00.0\n     gpu 04:00.0\n"
               "    nic 05:00.0 near speed=100000\n"
               "   nic 06:00.0 top speed=100000\n") == Lines{"PXB 12 near top"});
}

TEST_CASE("nccl choice: a port that is down is ignored") {
  const std::string machine =
      "numa 0\n host 0000:00\n"
      "  switch 01:00.0\n   gpu 02:00.0\n   nic 03:00.0 mlx5_0 speed=100000";
  const std::string other = "  nic 04:00.0 mlx5_1 speed=100000\n";
  CHECK(chosen(machine + "\n" + other) == Lines{"PIX 12 mlx5_0"});
  CHECK(chosen(machine + " state=down\n" + other) == Lines{"PHB 12 mlx5_1"});
}

TEST_CASE("nccl choice: only the NICs that are offered count") {
  const Graph graph = make_machine(machines::one_nic_each());
  const std::vector<NcclChoice> choices = nccl_choices(graph, {.nics = {{graph.nics()[7]}}});
  CHECK(labels_of(graph, choices.front().nics) == "mlx5_7");
  CHECK_FALSE(choices.front().gpu_direct);
  CHECK(choices.back().gpu_direct);
  CHECK(nccl_choices(graph, {.nics = std::vector<NodeIndex>()}).front().nics.empty());
}
