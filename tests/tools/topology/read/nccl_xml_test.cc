// SPDX-License-Identifier: Apache-2.0
//
// Tests with files for NCCL, as programs and people write them. All texts are invented.
#include "topology/read/nccl_xml.h"

#include "tests/tools/topology/read/reading.h"
#include "topology/assignment.h"
#include "topology/distance.h"
#include "topology/link_state.h"
#include "topology/nccl_choice.h"

using namespace beeline::topology;
using Catch::Matchers::Contains;

namespace {

// Two NUMA nodes; on the first a switch with a GPU and a NIC, on the second a GPU by itself.
const std::string kMachine = R"(<?xml version="1.0"?>
<!-- a comment -->
<system version="1" name="two seats">
  <cpu host_hash="0x1234" numaid="0" affinity="0000ffff,00000000,0000ffff" arch="x86_64">
    <pci busid="0000:17:00.0" class="0x060400" vendor="0x1000" device="0xc030"
         link_speed="32.0 GT/s PCIe" link_width="16">
      <pci link_width="16" link_speed="16.0 GT/s PCIe" class="0x030200" busid="0000:1A:00.0">
        <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:90:00.0" count="2"/></gpu>
      </pci>
      <pci busid="0000:1b:00.0" class="0x020700" vendor="0X15B3" link_speed="32 GT/s" link_width="8">
        <nic>
          <net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1" maxconn="1" gdr="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="0xff0000">
    <pci busid="0000:90:00.0" class="0x03"/>
  </cpu>
</system>
)";

Graph read(const std::string& text) { return made(read_nccl_xml(text, "x.xml")); }

// A machine with one NUMA node, and that below it.
std::string around(const std::string& inside) {
  return "<system version=\"1\"><cpu numaid=\"0\">" + inside + "</cpu></system>";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

const Node& at(const Graph& graph, const char* address) {
  const NodeIndex found = find_pci(graph, *parse_pci_address(address));
  REQUIRE(found != kNoNode);
  return graph[found];
}

}  // namespace

TEST_CASE("nccl xml: a machine becomes its graph") {
  const Graph graph = read(kMachine);
  CHECK(graph.source() == "x.xml (NCCL)");
  CHECK(graph[0].name == "two seats");
  CHECK(graph.remarks().empty());
  REQUIRE(graph.gpus().size() == 2);
  REQUIRE(graph.nics().size() == 1);

  const Node& gpu = at(graph, "1a:00.0");
  CHECK(gpu.role == DeviceRole::kGpu);
  CHECK(gpu.numa == 0);
  CHECK(gpu.cpus == "0-15,64-79");
  CHECK(gpu.link_now == PcieLink{16'000, 16});
  const Node& nic = at(graph, "1b:00.0");
  CHECK(os_name(nic, OsKind::kRdma) == "mlx5_0");
  CHECK(nic.nic_ports == std::vector<NicPort>{{1, 400'000}});
  CHECK(nic.vendor == 0x15b3);
  CHECK(nic.link_now == PcieLink{32'000, 8});
  CHECK(at(graph, "17:00.0").port == BridgePort::kSwitch);
  CHECK(at(graph, "90:00.0").numa == 1);
  CHECK(at(graph, "90:00.0").cpus == "16-23");

  const Distances places(graph);
  CHECK(places.between(graph.gpus()[0], graph.nics()[0]) == Distance::kPix);
  CHECK(places.between(graph.gpus()[1], graph.nics()[0]) == Distance::kSys);
}

TEST_CASE("nccl xml: links without data are unknown") {
  const std::string rate =
      GENERATE("", "Unknown", "Unknown speed", "100000 MT/s", "-8 GT/s", "nan GT/s");
  const std::string width = GENERATE("", "0", "255", "-1", "x");
  const Graph graph = read(around("<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"" +
                                  rate + "\" link_width=\"" + width + "\"/>"));
  CHECK(at(graph, "01:00.0").link_now == PcieLink{});
}

TEST_CASE("nccl xml: a network device without a name is a NIC, and a remark") {
  const Graph graph = read(around("<pci busid=\"0000:01:00.0\" class=\"0x020000\"/>"));
  CHECK(graph.nics().size() == 1);
  REQUIRE(graph.remarks().size() == 1);
  CHECK_THAT(graph.remarks()[0], Contains("treated as RDMA NICs: 1"));
}

TEST_CASE("nccl xml: an interface of the socket transport is not an RDMA NIC") {
  const Graph graph =
      read(around("<pci busid=\"0000:01:00.0\" class=\"0x020000\"><nic><net name=\"eth0\" "
                  "port=\"0\"/></nic></pci>"));
  CHECK(graph.nics().empty());
  CHECK(os_name(at(graph, "01:00.0"), OsKind::kInterface) == "eth0");
}

TEST_CASE("nccl xml: two ports of one name are one NIC") {
  const Graph graph =
      read(around("<pci busid=\"0000:01:00.0\" class=\"0x020700\"><nic>"
                  "<net name=\"mlx4_0\" port=\"2\" speed=\"56000\"/>"
                  "<net name=\"mlx4_0\" port=\"1\" speed=\"40000\"/></nic></pci>"));
  REQUIRE(graph.nics().size() == 1);
  const Node& nic = graph[graph.nics()[0]];
  CHECK(nic.os_devices.size() == 1);
  CHECK(nic.nic_ports == std::vector<NicPort>{{1, 40'000}, {2, 56'000}});
}

TEST_CASE("nccl xml: functions that NCCL merged are separate devices") {
  const Graph graph =
      read(around("<pci busid=\"0000:01:00.0\" class=\"0x020000\" vendor=\"0x15b3\" "
                  "link_speed=\"16.0 GT/s PCIe\" link_width=\"8\"><nic>"
                  "<net name=\"mlx5_0\" port=\"1\" speed=\"100000\"/>"
                  "<net name=\"mlx5_1\" port=\"2\" speed=\"50000\"/></nic></pci>"));
  REQUIRE(graph.nics().size() == 2);
  const Node& first = at(graph, "01:00.0");
  const Node& second = at(graph, "01:00.1");
  CHECK(os_name(first, OsKind::kRdma) == "mlx5_0");
  CHECK(first.nic_ports == std::vector<NicPort>{{1, 100'000}});
  CHECK(os_name(second, OsKind::kRdma) == "mlx5_1");
  CHECK(second.nic_ports == std::vector<NicPort>{{2, 50'000}});
  CHECK(second.role == DeviceRole::kRdmaNic);
  CHECK(second.vendor == 0x15b3);
  // They share a slot that carries both.
  CHECK(link_above(graph, graph.nics()[1]).verdict == LinkVerdict::kBelowPorts);
}

TEST_CASE("nccl xml: a merged function does not get the address of another one") {
  const std::string nic = "<nic><net name=\"a\"/><net name=\"b\"/></nic>";
  const Graph graph = read(
      around("<pci busid=\"0000:01:00.0\" class=\"0x020000\">" + nic +
             "</pci>"
             "<pci busid=\"0000:01:00.1\" class=\"0x020000\"><nic><net name=\"c\"/></nic></pci>"
             "<pci busid=\"0000:02:00.7\" class=\"0x020000\"><nic><net name=\"d\"/>"
             "<net name=\"e\"/></nic></pci>"));
  CHECK(os_name(at(graph, "01:00.1"), OsKind::kRdma) == "c");
  CHECK(os_name(at(graph, "01:00.2"), OsKind::kRdma) == "b");
  const NodeIndex last = find_os_device(graph, OsKind::kRdma, "e");
  REQUIRE(last != kNoNode);
  CHECK_FALSE(graph[last].pci);
  CHECK(graph[last].numa == 0);
}

TEST_CASE("nccl xml: links between GPUs, their numbers and their models are kept") {
  const Graph graph = read(
      around("<pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"3\" sm=\"90\" rank=\"1\">"
             "<nvlink target=\"0000:1B:00.0\" count=\"4\" tclass=\"0x030200\"/>"
             "<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/>"
             "<c2c bw=\"44712\" count=\"5\"/></gpu></pci>"
             "<pci busid=\"0000:02:00.0\" class=\"0x120000\"><gpu dev=\"x\" sm=\"94\" "
             "gcn=\"gfx942\" arch=\"38910\"><xgmi target=\"0000:01:00.0\"/></gpu></pci>"));
  const GpuFacts& nvidia = at(graph, "01:00.0").gpu;
  CHECK(nvidia.number == 3);
  CHECK(nvidia.sm == 90);
  CHECK(nvidia.links ==
        std::vector<GpuLink>{{GpuLinkKind::kNvLink, "0000:1b:00.0", 0x030200, 4},
                             {GpuLinkKind::kNvLink, "fffffff:ffff:ff", 0x068000, 18},
                             {GpuLinkKind::kC2c, "", 0, 5, 44'712}});
  const GpuFacts& amd = at(graph, "02:00.0").gpu;
  CHECK(amd.number == -1);
  CHECK(amd.gcn == "gfx942");
  CHECK(amd.links == std::vector<GpuLink>{{GpuLinkKind::kXgmi, "0000:01:00.0"}});
}

TEST_CASE("nccl xml: devices without a class are counted") {
  const Graph graph =
      read(around("<pci busid=\"0000:01:00.0\"/><pci busid=\"0000:02:00.0\" class=\"\"/>"
                  "<pci busid=\"0000:03:00.0\"><gpu dev=\"0\"/></pci>"
                  "<pci busid=\"0000:04:00.0\"><nic><net name=\"mlx5_0\"/></nic></pci>"));
  CHECK(graph.gpus().size() == 1);
  CHECK(graph.nics().size() == 1);
  REQUIRE(graph.remarks().size() == 1);
  CHECK_THAT(
      graph.remarks()[0],
      Contains("devices without a PCI class, which may be GPUs or NICs: device 0000:01:00.0") &&
          Contains(" and 1 more; run beeline topo on the machine itself"));
}

TEST_CASE("nccl xml: a merged device is ignored if its members are listed, and kept otherwise") {
  const std::string merged = "<nic><net name=\"a+b\" port=\"1\" speed=\"800000\"/></nic>";
  const std::string members =
      "<pci busid=\"0000:01:00.0\" class=\"0x0207\"><nic><net name=\"a\" port=\"1\"/></nic></pci>"
      "<pci busid=\"0000:02:00.0\" class=\"0x0207\"><nic><net name=\"b\" port=\"1\"/></nic></pci>";
  const Graph both = read(around(merged + members));
  CHECK(both.nics().size() == 2);
  REQUIRE(both.remarks().size() == 1);
  CHECK_THAT(both.remarks()[0], Contains("a+b is ignored"));

  const Graph alone = read(around(merged));
  REQUIRE(alone.nics().size() == 1);
  CHECK(label(alone[alone.nics()[0]]) == "a+b");
  CHECK(alone[alone.nics()[0]].numa == 0);
}

TEST_CASE("nccl xml: NCCL gives equal NICs to GPUs in the order of the file") {
  const auto device = [](const char* address, const char* more) {
    return std::string("<pci busid=\"0000:") + address + "\" " + more;
  };
  const std::string gpus =
      device("01:00.0", "class=\"0x030200\"/>") + device("02:00.0", "class=\"0x030200\"/>");
  const auto nic = [&device](const char* address, const std::string& name) {
    return device(address, "class=\"0x020700\"><nic><net name=\"") + name +
           "\" speed=\"100000\" port=\"1\"/></nic></pci>";
  };
  const auto first_nic = [](const Graph& graph) {
    return label(graph[nccl_choices(graph).front().nics.front()]);
  };
  CHECK(first_nic(read(around(gpus + nic("03:00.0", "a") + nic("04:00.0", "b")))) == "a");
  const Graph backwards = read(around(gpus + nic("04:00.0", "b") + nic("03:00.0", "a")));
  CHECK(first_nic(backwards) == "b");
  CHECK(label(backwards[assign(backwards).gpus.front().nics.front()]) == "b");
}

TEST_CASE("nccl xml: of a dump of several hosts the first one is read") {
  const std::string two =
      "<system version=\"1\">"
      "<cpu host_hash=\"0xa\" numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"/></cpu>"
      "<cpu host_hash=\"0xb\" numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"/></cpu>"
      "</system>";
  const Graph graph = read(two);
  CHECK(graph.gpus().size() == 1);
  REQUIRE(graph.remarks().size() == 1);
  CHECK_THAT(graph.remarks()[0], Contains("several hosts"));
}

TEST_CASE("nccl xml: unknown elements are ignored, and missing data is unknown") {
  const Graph graph = read(
      "<system version=\"3\"><grace/>"
      "<cpu><pci><pci class=\"0x030200\" busid=\"0000:01:00.0\"><dimm/></pci></pci><fpga/></cpu>"
      "</system>");
  CHECK(graph.gpus().size() == 1);
  CHECK(graph[graph.gpus()[0]].numa == -1);
  const auto has = [&graph](const std::string& what) {
    for (const std::string& remark : graph.remarks()) {
      if (remark.find(what) != std::string::npos) return true;
    }
    return false;
  };
  CHECK(has("version \"3\""));
  CHECK(has("<grace>"));
  CHECK(has("<fpga>"));
  CHECK(has("without a NUMA node"));
  CHECK(has("without busid"));
}

TEST_CASE("nccl xml: a host bridge written by hand is recognized") {
  const Graph graph =
      read(around("<pci busid=\"0000:00:00.0\" class=\"0x060000\">"
                  "<pci busid=\"0000:3b:00.0\" class=\"0x030200\" vendor=\"0x10de\"/>"
                  "<pci busid=\"0000:3c:00.0\" class=\"0x020700\"/></pci>"));
  REQUIRE(graph.nics().size() == 1);
  CHECK(Distances(graph).between(graph.gpus()[0], graph.nics()[0]) == Distance::kPhb);
}

TEST_CASE("nccl xml: a function below a device becomes its sibling") {
  const Graph graph =
      read(around("<pci busid=\"0000:17:00.0\" class=\"0x060400\">"
                  "<pci busid=\"0000:1a:00.0\" class=\"0x030200\">"
                  "<pci busid=\"0000:1b:00.0\" class=\"0x020700\"/></pci></pci>"));
  REQUIRE(graph.nics().size() == 1);
  CHECK(Distances(graph).between(graph.gpus()[0], graph.nics()[0]) == Distance::kPix);
}

TEST_CASE("nccl xml: the error for an impossible machine names the line and the fix") {
  const auto error = [](const std::string& text) { return error_of(read_nccl_xml(text, "x.xml")); };
  CHECK(error("<graphs/>") ==
        "x.xml:1: the root is <graphs>, not <system>; set NCCL_TOPO_DUMP_FILE to let NCCL write a "
        "file");
  CHECK(error(replaced(kMachine, "0000:1b:00.0", "0000:1a:00.0")) ==
        "x.xml:10: busid \"0000:1a:00.0\" appears twice, first in line 7; give each "
        "device its own address");
  CHECK(error(replaced(kMachine, "0000:1b:00.0", "GPU-3")) ==
        "x.xml:10: busid \"GPU-3\" is not a PCI address; addresses look like 0000:3b:00.0");
  CHECK_THAT(error(replaced(kMachine, "<pci busid=\"0000:90:00.0\" class=\"0x03\"/>",
                            "<pci busid=\"0000:90:00.0\" class=\"0x02\"><nic><net name=\"mlx5_0\"/>"
                            "</nic></pci>")),
             Contains("x.xml:18: network device mlx5_0 appears twice"));
}

TEST_CASE("nccl xml: a device without address and name is ignored, with a remark") {
  const Graph graph =
      read(around("<pci class=\"0x030200\"/><pci class=\"0x020700\"/>"
                  "<pci class=\"0x020700\"><nic><net name=\"mlx5_0\" port=\"1\"/></nic></pci>"));
  CHECK(graph.gpus().empty());
  REQUIRE(graph.nics().size() == 1);
  CHECK(label(graph[graph.nics()[0]]) == "mlx5_0");
  REQUIRE(graph.remarks().size() == 2);
  CHECK_THAT(graph.remarks()[1], Contains("a device without busid and name is ignored"));
}

TEST_CASE("nccl xml: invalid numbers are unknown, with a remark") {
  const Graph graph =
      read(around("<pci busid=\"0000:01:00.0\" class=\"0x020700\" vendor=\"Mellanox\"><nic>"
                  "<net name=\"mlx5_0\" port=\"1\" speed=\"fast\"/></nic></pci>"));
  CHECK(graph[graph.nics()[0]].nic_ports == std::vector<NicPort>{{1, 0}});
  REQUIRE(graph.remarks().size() == 2);
  CHECK(graph.remarks()[0] == "line 1: vendor=\"Mellanox\" cannot be read");
  CHECK(graph.remarks()[1] == "line 1: speed=\"fast\" cannot be read");
}
