// SPDX-License-Identifier: Apache-2.0
//
// Tests of the texts and the JSON.
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"
#include "topology/render/assignment_text.h"
#include "topology/render/difference.h"
#include "topology/render/json.h"
#include "topology/render/matrix.h"
#include "topology/render/name_list.h"
#include "topology/render/report.h"
#include "topology/render/table.h"
#include "topology/render/utf8.h"
#include "topology/render/verdict.h"

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

TEST_CASE("render: a table that is too wide breaks long cells, then has parts", "[topology]") {
  const std::vector<Cells> rows = {
      {"name", "number", "remark"}, {"one", "1000", "a remark of several words"}, {"two", "2", ""}};
  CHECK(aligned(rows) ==
        "name  number  remark\none   1000    a remark of several words\ntwo   2\n");
  CHECK(aligned(rows, 30) ==
        "name  number  remark\n"
        "one   1000    a remark of\n"
        "              several words\n"
        "two   2\n");
  CHECK(aligned(rows, 20) ==
        "name  number\none   1000\ntwo   2\n\n"
        "name  remark\none   a remark of\n      several words\ntwo\n");
}

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

TEST_CASE("matrix: unknown values, and an empty machine") {
  CHECK(matrix_text(make_machine("host 0000:10\n  gpu 10:01.0\n"))
            .starts_with("      GPU0  NUMA  CPUs\n"
                         "GPU0  X     ?     ?\n"));
  CHECK(matrix_text(make_machine("")) == "no GPU and no RDMA NIC\n");
}

TEST_CASE("matrix: only the distances of NICs from GPUs, and the NICs in use") {
  const Graph graph = make_machine(kSmall);
  CHECK(gpu_nic_matrix_text(graph, assign(graph))
            .starts_with("         GPU0  GPU1\n"
                         "mlx5_0   PIX*  SYS\n"
                         "mlx5_10  SYS   NODE*\n"
                         "\n"
                         "  *     the GPU uses this NIC\n"
                         "  PIX   through"));
  const Graph nothing = make_machine("");
  CHECK(gpu_nic_matrix_text(nothing, assign(nothing)) == "no GPU and no RDMA NIC\n");
}

TEST_CASE("report: devices and slow links") {
  const Graph graph = make_machine(kSmall);
  CHECK(devices_text(graph) ==
        "GPU0     0000:13:00.0  H100\n"
        "GPU1     0000:90:01.0\n"
        "mlx5_0   0000:14:00.0  400 Gb/s\n"
        "mlx5_10  0000:80:01.0  200 Gb/s\n");
  CHECK(findings_text(graph, Severity::kWarning) ==
        "mlx5_0: Gen4 x8, could be Gen5 x16: reseat the card, look at the riser and the BIOS\n");
}

TEST_CASE("report: GPUs have CUDA's numbers, if these are known") {
  const std::string text = "host 0000:00\n gpu 01:00.0 dev=1\n gpu 02:00.0 ";
  CHECK(devices_text(make_machine(text + "dev=0\n")) == "GPU0  0000:02:00.0\nGPU1  0000:01:00.0\n");
  for (const char* unknown : {"dev=1\n", "\n"}) {
    CHECK(devices_text(make_machine(text + unknown)) == "GPU0  0000:01:00.0\nGPU1  0000:02:00.0\n");
  }
}

TEST_CASE("assignment: a line for each GPU, and a shell command with its NICs") {
  const Graph graph = make_machine(kSmall);
  const Assignment assignment = assign(graph);
  CHECK(assignment_text(graph, assignment) ==
        "GPU   address       NIC      ports     distance  slowest link\n"
        "GPU0  0000:13:00.0  mlx5_0   400 Gb/s  PIX       15.8 GB/s: mlx5_0, Gen4 x8\n"
        "GPU1  0000:90:01.0  mlx5_10  200 Gb/s  NODE      ?\n"
        "GPU0: the nearest NIC (PIX)\n"
        "GPU1: the nearest NIC (NODE)\n"
        "NCCL 2.30 itself makes the same choice\n");
  CHECK(standby_text(graph, assignment) == "GPU0: mlx5_10\nGPU1: mlx5_0\n");
  CHECK(nccl_ib_hca(graph, assignment) == "export NCCL_IB_HCA=\"=mlx5_0,mlx5_10\"");
  const Graph no_gpu = make_machine("host 0000:10\n  nic 10:01.0 mlx5_0\n");
  CHECK(assignment_text(no_gpu, assign(no_gpu)) == "mlx5_0 serves no GPU: there is no GPU\n");
  CHECK(nccl_ib_hca(no_gpu, assign(no_gpu)).empty());
}

TEST_CASE("report: the NICs of a machine without GPUs") {
  CHECK(nics_text(make_machine("numa 1\n host 0000:10\n"
                               "  nic 10:01.0 mlx5_0 speed=400000\n"
                               "  nic 10:02.0 mlx5_1 speed=25000 speed=25000 state=down\n"
                               "soft rxe0\n")) ==
        "NIC     address       NUMA node  ports              state     interface\n"
        "mlx5_0  0000:10:01.0  1          400 Gb/s           ?\n"
        "mlx5_1  0000:10:02.0  1          25 Gb/s + 25 Gb/s  ? + down\n"
        "rxe0    no PCI        1          ?                  ?\n");
  CHECK(nics_text(make_machine("numa 0\n")).empty());
}

TEST_CASE("assignment: NCCL's choice has a column if it differs") {
  const Graph graph = make_machine(kSmall);
  const Assignment assignment = assign(graph, {.nics = std::vector{graph.nics()[1]}});
  const std::string text = assignment_text(graph, assignment);
  const auto has = [&text](const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has("  NCCL 2.30 itself takes\n"));
  CHECK(has("Gen5 x16  mlx5_0 PIX\n"));
  CHECK(has("  the same\n"));
  CHECK_FALSE(has("NCCL 2.30 itself makes the same choice"));
}

TEST_CASE("assignment: GPUs are sorted by their numbers, not by their addresses") {
  const Graph graph = make_machine(
      "numa 0\n host 0000:00\n  gpu 01:00.0 dev=2\n  gpu 02:00.0 dev=0\n  gpu 03:00.0 dev=1\n"
      "  nic 04:00.0 mlx5_0 speed=400000\n");
  const std::string text = assignment_text(graph, assign(graph));
  CHECK(text.find("GPU0  0000:02:00.0") < text.find("GPU1  0000:03:00.0"));
  CHECK(text.find("GPU1  0000:03:00.0") < text.find("GPU2  0000:01:00.0"));
  CHECK(text.find("GPU0 to GPU2: ") != std::string::npos);
  CHECK(matrix_text(graph).starts_with("        GPU0  GPU1  GPU2  mlx5_0"));
}

TEST_CASE("assignment: a reason of several GPUs is printed once") {
  const Graph graph = make_machine(machines::far_socket());
  const std::string text = assignment_text(graph, assign(graph));
  const std::string far = "no NIC is known to be on the GPU's NUMA node";
  CHECK(text.find(far) != std::string::npos);
  CHECK(text.find(far) == text.rfind(far));
  CHECK(text.find("GPU0 to GPU3: ") != std::string::npos);
}

TEST_CASE("assignment: an idle link is shown with its rate under load") {
  const Graph graph = make_machine(
      "host 0000:10\n root 10:01.0 max=32x16\n  gpu 11:00.0 now=2.5x16 max=32x16\n"
      " root 10:02.0 max=32x16\n  nic 12:00.0 mlx5_0 now=32x16 max=32x16\n");
  CHECK(
      assignment_text(graph, assign(graph)).find("63.0 GB/s: GPU0, Gen5 x16, now saving power\n") !=
      std::string::npos);
}

TEST_CASE("assignment: the shell command contains no special characters") {
  for (const char* name : {"a;reboot", "$(reboot)", "a'b", "a\nb", "`x`"}) {
    GraphParts parts = read_machine("host 0000:10\n  gpu 10:01.0\n  nic 10:02.0 mlx5_0\n");
    parts.nodes.back().os_devices.front().name = name;
    const auto graph = Graph::make(std::move(parts));
    REQUIRE(graph);
    CHECK(nccl_ib_hca(*graph, assign(*graph)).empty());
  }
}

TEST_CASE("verdict: the summary in one sentence") {
  const auto verdict = [](const std::string& machine) {
    const Graph graph = make_machine(machine);
    return verdict_text(graph, assign(graph));
  };
  CHECK(verdict(kSmall) ==
        "2 of 2 GPUs have a NIC of their own; GPUDirect for GPU1 needs NCCL_NET_GDR_LEVEL=PHB; "
        "1 slow link, see below");
  CHECK(verdict(machines::one_nic_each())
            .starts_with("8 of 8 GPUs have a NIC of their own; GPUDirect is possible without "
                         "NCCL_NET_GDR_LEVEL; "));
  CHECK(verdict(machines::two_gpus_a_nic())
            .starts_with("0 of 8 GPUs have a NIC of their own, up to 2 share one; "));
  CHECK(verdict(machines::far_socket()).find("needs NCCL_NET_GDR_LEVEL=SYS") != std::string::npos);
  CHECK(verdict("") == "no GPU and no RDMA NIC is visible");
  const std::string links =
      "host 0000:10\n root 10:01.0 max=32x16\n  gpu 11:00.0 now=32x16 max=32x16\n";
  CHECK(verdict(links) == "there is no RDMA NIC for any GPU; no link is slow");
  CHECK(verdict(links + " root 10:02.0\n  nic 12:00.0 mlx5_0\n")
            .ends_with("no slow link among the 1 of 2 that can be judged"));
  CHECK(verdict("host 0000:10\n  nic 10:01.0 mlx5_0\n") ==
        "there is no GPU (--gpu ADDRESS treats a PCI device as one); it is unknown whether a link "
        "is slow");
}

TEST_CASE("names: three or more consecutive names are folded") {
  CHECK(folded({}).empty());
  CHECK(folded({"GPU0", "GPU1"}) == "GPU0, GPU1");
  CHECK(folded({"mlx5_8", "mlx5_9", "mlx5_10", "mlx5_12"}) == "mlx5_8 to mlx5_10, mlx5_12");
  CHECK(folded({"a", "b", "c"}) == "a, b, c");
  CHECK(folded({"n01", "n02", "n03"}) == "n01, n02, n03");
  CHECK(folded({"4294967295", "0", "1", "2"}) == "4294967295, 0 to 2");
}

TEST_CASE("utf8: only characters that a terminal and an XML parser accept") {
  CHECK(printable("a\x01\x7f") == "a??");
  CHECK(printable("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(printable("\xff\xc3") == "??");
  CHECK(printable("\xc0\xaf") == "??");  // overlong
  CHECK(printable("\xe0\x80\xaf") == "???");
  CHECK(printable("\xed\xa0\x80") == "???");       // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "????");  // above U+10FFFF
  CHECK(printable("\xef\xbf\xbf") == "?");         // U+FFFF, no character
  CHECK(printable("\xc2\x9b") == "?");             // steers terminals
  CHECK(count_characters("\xe2\x82\xac"
                         "1") == 2);
  CHECK(first_characters("\xe2\x82\xac"
                         "1\xc3\xa9",
                         2) ==
        "\xe2\x82\xac"
        "1");
  CHECK(first_characters("\xc3\xa9", 0).empty());
  CHECK(first_characters("ab", 5) == "ab");
}

TEST_CASE("report: models and links between GPUs, once for equal GPUs") {
  const std::string root = "numa 0\n host 0000:00\n";
  const Graph switched = make_machine(root +
                                      "  gpu 01:00.0 name=H100 nvlink=12*switch nvlink=6*switch\n"
                                      "  gpu 02:00.0 name=H100 nvlink=18*switch\n"
                                      "  gpu 03:00.0 name=H100 nvlink=18*switch c2c=200000\n");
  CHECK(models_text(switched) ==
        "GPU0, GPU1: H100; 18 NVLinks to switches\n"
        "GPU2: H100; 18 NVLinks to switches, C2C to the processor\n");
  CHECK(matrix_text(switched).find("GPU0  X     NV18  NV18") != std::string::npos);
  CHECK(matrix_text(switched).find("NV#   through # NVLinks") != std::string::npos);
  const Graph direct = make_machine(root +
                                    "  gpu 01:00.0 nvlink=4*02:00.0\n"
                                    "  gpu 02:00.0 nvlink=4*01:00.0\n  gpu 03:00.0\n");
  CHECK(models_text(direct) == "GPU0, GPU1: 4 NVLinks to 1 GPU\n");
  CHECK(matrix_text(direct).find("GPU0  X     NV4   PHB") != std::string::npos);
  CHECK(models_text(make_machine(root + "  gpu 01:00.0\n")).empty());
}

TEST_CASE("report: ports that are down, and interfaces") {
  CHECK(devices_text(make_machine("host 0000:10\n  nic 10:01.0 mlx5_0 speed=400000 speed=400000 "
                                  "state=down\n")) ==
        "mlx5_0  0000:10:01.0  400 Gb/s + 400 Gb/s (down)\n");
}

TEST_CASE("report: a note is printed once, and far NICs only in the verdict") {
  const Graph graph = make_machine(
      "numa 0\n host 0000:10\n  root 10:01.0\n   gpu 11:00.0\n"
      "numa 1\n host 0000:80\n  root 80:01.0\n   nic 81:00.0 mlx5_0 speed=9000000\n"
      "  root 80:02.0\n   nic 82:00.0 mlx5_1 speed=9000000\n");
  CHECK(findings_text(graph, Severity::kNote) ==
        "mlx5_0, mlx5_1: the speed of port 1 is 9000 Gb/s, more than any port has: correct the "
        "<net> in the file; its speed is in Mb/s\n");
  CHECK(findings_text(make_machine(machines::flat_virtual_machine()), Severity::kNote)
            .starts_with("the machine: no GPU and no NIC is below a PCIe bridge"));
}

TEST_CASE("report: only links that GPUs and NICs use are judged") {
  CHECK(findings_text(make_machine("host 0000:10\n"
                                   " root 10:01.0 max=32x16\n"
                                   "  other 11:00.0 eth0 now=2.5x1 max=32x16\n"),
                      Severity::kWarning)
            .empty());
}

TEST_CASE("json: contains only known values") {
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
  CHECK(gpu["nccl"] ==
        nlohmann::json{{"nics", gpu["nics"]}, {"path", "PIX"}, {"gpu_direct", true}});
  CHECK(json["findings"][0]["kind"] == "slow link");
  CHECK(json["findings"][0]["severity"] == "warning");
  CHECK(json["findings"][0]["node"] == gpu["nics"][0]);
  CHECK(json["spare_nics"].empty());
  for (std::size_t i = 0; i < json["nodes"].size(); ++i) CHECK(json["nodes"][i]["id"] == i);
}

TEST_CASE("json: links between GPUs, and ports that are down") {
  const Graph graph = make_machine(
      "host 0000:10\n  gpu 10:01.0 dev=3 sm=90 nvlink=18*switch\n"
      "  nic 10:02.0 mlx5_0 speed=400000 state=down\n");
  const auto json = nlohmann::json::parse(to_json(graph, assign(graph)));
  const auto& gpu = json["nodes"][graph.gpus()[0]];
  CHECK(gpu["number"] == 3);
  CHECK(gpu["gpu_links"][0]["kind"] == "NVLink");
  CHECK(gpu["gpu_links"][0]["count"] == 18);
  CHECK(json["nodes"][graph.nics()[0]]["ports"][0]["state"] == "down");
}

TEST_CASE("json: invalid UTF-8 is replaced") {
  GraphParts parts = read_machine(kSmall);
  parts.nodes[0].name = "\xff\"<";
  const auto graph = Graph::make(std::move(parts));
  REQUIRE(graph);
  CHECK(nlohmann::json::accept(to_json(*graph, assign(*graph))));
}

TEST_CASE("difference: each difference once, with all its devices") {
  const std::string a =
      "numa 0\n"
      " host 0000:10\n"
      "  root 10:01.0 max=32x16\n   gpu 11:00.0 now=2.5x16 max=32x16 name=H100\n"
      "  root 10:02.0 max=32x16\n   gpu 12:00.0 now=32x16 max=32x16 name=H100\n"
      "  root 10:03.0 max=32x16\n   gpu 13:00.0 now=32x16 max=32x16 name=H100\n"
      "  root 10:04.0 max=32x16\n   nic 14:00.0 mlx5_0 now=32x16 max=32x16 speed=400000\n";
  const auto told = [&a](std::string b, const std::string& from, const std::string& to) {
    for (auto at = b.find(from); !from.empty() && at != std::string::npos; at = b.find(from, at)) {
      b.replace(at, from.size(), to);
      at += to.size();
    }
    const Graph graph_a = make_machine(a);
    const Graph graph_b = make_machine(b);
    return difference_of(graph_a, graph_b);
  };
  CHECK(told(a, "", "").text.empty());
  CHECK(told(a, "", "").not_compared == 0);
  CHECK(told(a, "now=2.5x16", "now=32x16").text.empty());  // it sleeps in one of both
  CHECK(told(a, "H100", "H200").text == "GPU0 to GPU2: model H100 in A, H200 in B\n");
  CHECK(told(a, "mlx5_0 now=32x16", "mlx5_0 now=16x8").text ==
        "mlx5_0: link Gen5 x16 in A, Gen4 x8 in B\n");
  CHECK(told(a, " speed=400000", "").text.empty());
  CHECK(told(a, " speed=400000", "").not_compared == 1);
  const std::string more = a +
                           "  root 10:05.0 max=32x16\n"
                           "   nic 15:00.0 mlx5_1 now=32x16 max=32x16 speed=400000\n";
  CHECK(told(more, "", "").text ==
        "mlx5_1, bridge 0000:10:05.0: only in B\n"
        "GPU1: uses mlx5_0 in A, mlx5_1 in B\n");
  const std::string elsewhere = a.substr(0, a.find("  root 10:04.0")) +
                                "numa 1\n host 0000:80\n  root 80:04.0\n   nic 14:00.0 mlx5_0\n";
  CHECK(told(elsewhere, "", "").text.find("GPU0 to GPU2: distance to mlx5_0 PHB in A, SYS in B") !=
        std::string::npos);
}
