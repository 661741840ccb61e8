// SPDX-License-Identifier: Apache-2.0
//
// Texts and JSON for people and programs.
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/topology/machine_text.h"
#include "tests/topology/machines.h"
#include "topology/render/json.h"
#include "topology/render/matrix.h"
#include "topology/render/report.h"

using namespace beeline::topology;

namespace {

constexpr const char* kSmall =
    "package 0\n"
    " numa 0 cpus=0-15\n"
    "  host 0000:10\n"
    "   root 10:01.0 max=32x16\n"
    "    up 11:00.0 now=32x16 max=32x16\n"
    "     down 12:00.0 max=32x16\n"
    "      gpu 13:00.0 now=32x16 max=32x16 name=H100\n"
    "     down 12:01.0 max=32x16\n"
    "      nic 14:00.0 mlx5_0 now=16x8 max=32x16 speed=400000\n"
    "package 1\n"
    " numa 1 cpus=16-31\n"
    "  host 0000:80\n"
    "   nic 80:01.0 mlx5_10 speed=200000\n"
    "  host 0000:90\n"
    "   gpu 90:01.0\n";

}  // namespace

TEST_CASE("matrix: as nvidia-smi's readers know it") {
  CHECK(matrix_text(make_machine(kSmall)) ==
        "         GPU0  GPU1  mlx5_0  mlx5_10  NUMA  CPUs\n"
        "GPU0     X     SYS   PIX     SYS      0     0-15\n"
        "GPU1     SYS   X     SYS     NODE     1     16-31\n"
        "mlx5_0   PIX   SYS   X       SYS      0     0-15\n"
        "mlx5_10  SYS   NODE  SYS     X        1     16-31\n"
        "\n"
        "  X     the same device\n"
        "  PIX   through at most one PCIe switch\n"
        "  PXB   through several PCIe switches, not through a host bridge\n"
        "  PHB   through one PCIe host bridge (the processor)\n"
        "  NODE  through several host bridges of one NUMA node\n"
        "  SYS   through the interconnect between NUMA nodes\n");
}

TEST_CASE("matrix: what is not known, and nothing at all") {
  CHECK(matrix_text(make_machine("host 0000:10\n  gpu 10:01.0\n"))
            .starts_with("      GPU0  NUMA  CPUs\n"
                         "GPU0  X     ?     ?\n"));
  CHECK(matrix_text(make_machine("")) == "no GPU and no RDMA NIC\n");
}

TEST_CASE("report: who is who, who uses what, what is slow") {
  const Graph graph = make_machine(kSmall);
  CHECK(devices_text(graph) ==
        "GPU0     0000:13:00.0  H100\n"
        "GPU1     0000:90:01.0\n"
        "mlx5_0   0000:14:00.0  400 Gb/s\n"
        "mlx5_10  0000:80:01.0  200 Gb/s\n");
  CHECK(assignment_text(graph, assign(graph)) ==
        "GPU0 uses mlx5_0: the nearest NIC (PIX); slowest link mlx5_0, Gen4 x8, 15.8 GB/s\n"
        "     then mlx5_10\n"
        "GPU1 uses mlx5_10: the nearest NIC (NODE)\n"
        "     then mlx5_0\n");
  CHECK(slow_links_text(graph) ==
        "mlx5_0: Gen4 x8, could be Gen5 x16: reseat the card, look at the riser and the BIOS\n");
  CHECK(assignment_text(make_machine("host 0000:10\n  nic 10:01.0 mlx5_0\n"),
                        assign(make_machine("host 0000:10\n  nic 10:01.0 mlx5_0\n"))) ==
        "mlx5_0 serves no GPU: there is no GPU\n");
}

TEST_CASE("report: only links that GPUs and NICs use are judged") {
  CHECK(slow_links_text(make_machine("host 0000:10\n"
                                     " root 10:01.0 max=32x16\n"
                                     "  other 11:00.0 eth0 now=2.5x1 max=32x16\n"))
            .empty());
}

TEST_CASE("json: says what is known and nothing else") {
  const Graph graph = make_machine(kSmall);
  const auto json = nlohmann::json::parse(to_json(graph, assign(graph)));
  REQUIRE(json["gpus"].size() == 2);
  const auto& gpu = json["gpus"][0];
  CHECK(gpu["name"] == "GPU0");
  CHECK(gpu["distance"] == "PIX");
  REQUIRE(gpu["nics"].size() == 1);
  const auto& nic = json["nodes"][gpu["nics"][0].get<std::size_t>()];
  CHECK(nic["os_devices"] == nlohmann::json{"mlx5_0"});
  CHECK(nic["pci"] == "0000:14:00.0");
  CHECK(nic["link_now"] == nlohmann::json{{"gt_per_s", 16.0}, {"lanes", 8}});
  CHECK_FALSE(nic.contains("bond"));
  CHECK(gpu["distances"].size() == 2);
  CHECK(gpu["bottleneck"]["verdict"] == "degraded");
  CHECK(json["slow_links"].size() == 1);
  CHECK(json["spare_nics"].empty());
  for (std::size_t i = 0; i < json["nodes"].size(); ++i) CHECK(json["nodes"][i]["id"] == i);
}

TEST_CASE("json: bytes that are no text are replaced") {
  GraphParts parts = read_machine(kSmall);
  parts.nodes[0].name = "\xff\"<";
  const auto graph = Graph::make(std::move(parts));
  REQUIRE(graph);
  CHECK(nlohmann::json::accept(to_json(*graph, assign(*graph))));
}
