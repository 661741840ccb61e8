// SPDX-License-Identifier: Apache-2.0
//
// Tests of the list of problems of a machine.
#include "topology/findings.h"

#include "tests/support/catch.h"
#include "tests/tools/topology/answers.h"
#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"

using namespace beeline::topology;

namespace {

// "warning, slow link, mlx5_0: Gen4 x8, ...".
Lines found(const Graph& graph, const FindingOptions& options = {}) {
  Lines lines;
  for (const Finding& finding : findings(graph, options)) {
    const std::string device = finding.device == kNoNode ? "machine" : label(graph[finding.device]);
    lines.push_back(std::string(to_string(finding.severity)) + ", " + to_string(finding.kind) +
                    ", " + device + ": " + describe(finding));
  }
  return lines;
}
Lines found(const std::string& text) { return found(make_machine(text)); }

}  // namespace

TEST_CASE("findings: good machines have none") {
  for (const std::string& machine :
       {machines::one_nic_each(), machines::tied_in_pairs(), machines::two_gpus_a_nic(),
        machines::four_nics_each(), machines::one_root_port(), machines::no_io()}) {
    CAPTURE(machine);
    CHECK(found(machine).empty());
  }
}

TEST_CASE("findings: a slow link of a NIC, a GPU and a switch, each once") {
  const Graph graph = make_machine(
      "host 0000:00\n"
      " root 00:01.0 max=32x16\n"
      "  up 01:00.0 now=16x8 max=32x16\n"
      "   down 02:00.0 max=32x16\n    gpu 03:00.0 now=32x4 max=32x16\n"
      "   down 02:01.0 max=32x16\n    nic 04:00.0 mlx5_0 now=16x16 max=32x16\n"
      "    nic 04:00.1 mlx5_1 now=16x16 max=32x16\n");
  const Lines lines = found(graph);
  CHECK(lines == Lines{"warning, slow link, bridge 0000:01:00.0: Gen4 x8, could be Gen5 x16: look "
                       "at the cable or riser above this switch and at the BIOS",
                       "warning, slow link, GPU 0000:03:00.0: Gen5 x4, could be Gen5 x16: reseat "
                       "the card, look at the riser and the BIOS",
                       "warning, slow link, mlx5_0: Gen4 x16, could be Gen5 x16: reseat the card, "
                       "look at the riser and the BIOS"});
  CHECK(has_warning(findings(graph)));
  // Links that no NIC in use needs are ignored.
  CHECK(found(graph, {.nics = std::vector<NodeIndex>()}).size() == 2);
}

TEST_CASE("findings: NCCL takes a NIC behind the processor") {
  const Lines lines = found(
      "numa 0\n"
      " host 0000:00\n  root 00:01.0\n   gpu 01:00.0\n"
      " host 0000:40\n  root 40:01.0\n   nic 41:00.0 mlx5_0\n");
  CHECK(lines ==
        Lines{"note, far NIC, GPU 0000:01:00.0: NCCL uses mlx5_0 (PHB), too far away for GPUDirect "
              "by default, so the data passes through host memory: set NCCL_NET_GDR_LEVEL=PHB for "
              "GPUDirect; a NIC below the GPU's PCIe switch would be best"});
  CHECK_FALSE(has_warning(findings(make_machine(machines::far_socket()))));
  CHECK(found(machines::far_socket()).size() == 4);
}

TEST_CASE("findings: a near NIC that NCCL does not take because it is slow is named once") {
  const Lines lines = found(
      "numa 0\n"
      " host 0000:00\n"
      "  switch 01:00.0 max=32x16\n"
      "   gpu 02:00.0 max=32x16\n   gpu 03:00.0 max=32x16\n"
      "   nic 04:00.0 slow max=16x8 speed=25000\n"
      "  switch 05:00.0 max=32x16\n   nic 06:00.0 mlx5_0 max=32x16 speed=400000\n");
  REQUIRE(lines.size() == 3);
  CHECK(lines[2] ==
        "note, slow near NIC, slow: near GPU 0000:02:00.0, GPU 0000:03:00.0 (PIX), but NCCL uses "
        "mlx5_0 (PHB) with 48 GB/s instead of 3.12 GB/s: swap the slots of these NICs, unless this "
        "one has another purpose");
}

TEST_CASE("findings: a hidden tree is one finding, not one for each GPU") {
  const Lines lines = found(machines::flat_virtual_machine());
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("note, hidden tree, machine: "));
  CHECK(lines[0].ends_with("description of the machine"));
}

TEST_CASE("findings: ports that are down, and speeds that no port has") {
  CHECK(found("host 0000:00\n"
              " nic 01:00.0 mlx5_0 now=16x16 max=16x16 speed=200000 state=down\n"
              " nic 02:00.0 mlx5_1 now=16x16 max=16x16 speed=200000000\n") ==
        Lines{"note, port down, mlx5_0: port 1 is down, so NCCL does not use it: check the cable "
              "and the network switch if it should be up",
              "note, odd speed, mlx5_1: the speed of port 1 is 200000 Gb/s, more than any port "
              "has: correct the <net> in the file; its speed is in Mb/s"});
}

TEST_CASE("findings: the ports of a card share its slot") {
  const auto card = [](const std::string& second) {
    return found(
        "host 0000:00\n"
        " root 00:01.0 max=16x16\n"
        "  nic 01:00.0 mlx5_0 now=16x16 max=16x16 speed=200000\n"
        "  nic 01:00.1 mlx5_1 now=16x16 max=16x16 speed=200000" +
        second + "\n");
  };
  CHECK(
      card("") ==
      Lines{
          "warning, slow link, mlx5_0: Gen4 x16 carries 31.5 GB/s, but its network ports and those "
          "of mlx5_1 carry 50.0 GB/s: it supports no faster link, so expect the lower bandwidth"});
  REQUIRE(card(" state=down").size() == 1);
  CHECK(card(" state=down")[0].starts_with("note, port down, mlx5_1"));
}
