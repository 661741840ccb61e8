// SPDX-License-Identifier: Apache-2.0
//
// Tests that a machine that was written for NCCL is the same when it is read again.
#include "topology/write/nccl_xml.h"

#include <map>

#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"
#include "tests/tools/topology/read/random_machine.h"
#include "tests/tools/topology/read/reading.h"
#include "topology/distance.h"
#include "topology/link_state.h"
#include "topology/read/nccl_xml.h"

using namespace beeline::topology;
using Catch::Matchers::Contains;

namespace {

Graph read_back(const Graph& graph) { return made(read_nccl_xml(write_nccl_xml(graph), "x.xml")); }

std::vector<NodeIndex> devices_of(const Graph& graph) {
  std::vector<NodeIndex> devices(graph.gpus().begin(), graph.gpus().end());
  devices.insert(devices.end(), graph.nics().begin(), graph.nics().end());
  return devices;
}

// All that NCCL goes by, by the devices' places in the graph's lists.
void check_same_to_nccl(const Graph& a, const Graph& b) {
  const std::vector<NodeIndex> x = devices_of(a);
  const std::vector<NodeIndex> y = devices_of(b);
  REQUIRE(a.gpus().size() == b.gpus().size());
  REQUIRE(x.size() == y.size());
  const Distances places_a(a);
  const Distances places_b(b);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Node& one = a[x[i]];
    const Node& other = b[y[i]];
    CHECK(one.pci == other.pci);
    CHECK(one.numa == other.numa);
    CHECK(one.role == other.role);
    CHECK(one.os_devices == other.os_devices);
    CHECK(one.nic_ports == other.nic_ports);
    if (one.numa >= 0) CHECK(one.cpus == other.cpus);
    for (std::size_t j = 0; j < x.size(); ++j) {
      CAPTURE(label(one), label(a[x[j]]));
      const auto word_a = nccl_name(places_a.between(x[i], x[j]));
      CHECK(std::string(word_a) == nccl_name(places_b.between(y[i], y[j])));
    }
  }
}

void check_round_trip(const Graph& graph) {
  const Graph once = read_back(graph);
  check_same_to_nccl(graph, once);
  CHECK(write_nccl_xml(once) == write_nccl_xml(graph));
  const Graph twice = read_back(once);
  REQUIRE(once.size() == twice.size());
  for (NodeIndex i = 0; i < once.size(); ++i) CHECK(once[i] == twice[i]);
}

}  // namespace

TEST_CASE("nccl write: every kind of machine is read back the same") {
  const std::map<std::string, std::string> kinds = {
      {"one NIC each", machines::one_nic_each()},
      {"reversed", machines::one_nic_each_reversed()},
      {"pairs", machines::tied_in_pairs()},
      {"two GPUs a NIC", machines::two_gpus_a_nic()},
      {"one NIC for all", machines::one_nic_for_all()},
      {"four NICs each", machines::four_nics_each()},
      {"sixteen GPUs", machines::sixteen_gpus()},
      {"one root port", machines::one_root_port()},
      {"far socket", machines::far_socket()},
      {"dual port", machines::dual_port()},
      {"virtual functions", machines::virtual_functions()},
      {"bond", machines::bonded()},
      {"flat", machines::flat_virtual_machine()},
      {"no link width", machines::no_link_width()},
  };
  for (const auto& [name, text] : kinds) {
    CAPTURE(name);
    const Graph graph = make_machine(text);
    REQUIRE(!graph.gpus().empty());
    check_round_trip(graph);
  }
}

TEST_CASE("nccl write: random machines are read back the same") {
  std::size_t devices = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const Graph graph = good(Graph::make(random_machine(seed)));
    devices += devices_of(graph).size();
    check_round_trip(graph);
  }
  CHECK(devices > 1000);
}

TEST_CASE("nccl write: switches are written, their ports are not") {
  const Graph graph = make_machine(
      "numa 0 cpus=0-3,32\n"
      "  host 0000:17\n"
      "    root 17:01.0\n"
      "      up 18:00.0 now=32x16 max=32x16\n"
      "        down 19:00.0 max=32x8\n"
      "          gpu 1a:00.0 now=2.5x8 max=64x16\n"
      "        down 19:01.0\n"
      "          nic 1b:00.0 mlx5_0 speed=400000 now=32x16\n"
      "        down 19:02.0\n"
      "          other 1c:00.0 nvme0\n"
      "numa 1\n"
      "  host 0000:80\n"
      "    root 80:01.0\n"
      "      other 81:00.0\n");
  CHECK(write_nccl_xml(graph) ==
        "<system version=\"1\">\n"
        "  <cpu numaid=\"0\" affinity=\"00000001,0000000f\">\n"
        "    <pci busid=\"0000:18:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" "
        "link_width=\"16\">\n"
        "      <pci busid=\"0000:1a:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" "
        "link_width=\"8\"/>\n"
        "      <pci busid=\"0000:1b:00.0\" class=\"0x020000\" link_speed=\"32.0 GT/s PCIe\" "
        "link_width=\"16\">\n"
        "        <nic>\n"
        "          <net name=\"mlx5_0\" speed=\"400000\" port=\"1\"/>\n"
        "        </nic>\n"
        "      </pci>\n"
        "    </pci>\n"
        "  </cpu>\n"
        "  <cpu numaid=\"1\"/>\n"
        "</system>\n");
}

TEST_CASE("nccl write: the data of a file of NCCL is written again") {
  const std::string file =
      "<system version=\"2\">\n"
      "  <cpu numaid=\"0\" affinity=\"000000ff\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
      "familyid=\"191\" modelid=\"2\">\n"
      "    <pci busid=\"0000:01:00.0\" class=\"0x060400\" vendor=\"0x1000\" device=\"0xc030\" "
      "subsystem_vendor=\"0x1d9b\" subsystem_device=\"0xcc03\" link_speed=\"32.0 GT/s PCIe\" "
      "link_width=\"16\">\n"
      "      <pci busid=\"0000:08:00.0\" class=\"0x120000\" vendor=\"0x1002\" device=\"0x75a0\" "
      "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
      "        <gpu dev=\"0\" sm=\"256\" gcn=\"gfx950\" arch=\"38911\">\n"
      "          <xgmi target=\"0000:18:00.0\" count=\"1\" tclass=\"0x120000\"/>\n"
      "          <c2c bw=\"44712\" count=\"5\"/>\n"
      "        </gpu>\n"
      "      </pci>\n"
      "    </pci>\n"
      "  </cpu>\n"
      "</system>\n";
  const Graph graph = made(read_nccl_xml(file, "x.xml"));
  CHECK(graph.remarks().empty());
  CHECK(write_nccl_xml(graph) == file);
  CHECK_THAT(write_nccl_xml(graph, 1), Contains("<system version=\"1\">"));
}

TEST_CASE("nccl write: a text that is too long is cut between two characters") {
  const std::string accents = "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9";
  const std::string odd = "x" + accents + accents + accents + accents;
  const Graph graph = made(read_nccl_xml(
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\">"
      "<gpu dev=\"0\" gcn=\"" +
          odd + "\"/></pci></cpu></system>",
      "x.xml"));
  CHECK(graph[graph.gpus()[0]].gpu.gcn == odd.substr(0, 39));
  check_round_trip(graph);
}

TEST_CASE("nccl write: for AMD GPUs the version is that of RCCL") {
  const std::string gpu = "host 0000:00\n gpu 01:00.0 ids=1002:74a1:0:0\n";
  CHECK(nccl_xml_version(make_machine(gpu)) == 2);
  CHECK(nccl_xml_version(make_machine(gpu + " gpu 02:00.0 ids=10de:2330:0:0\n")) == 1);
  CHECK(nccl_xml_version(make_machine("host 0000:00\n")) == 1);
}

TEST_CASE("nccl write: both functions of a card are written") {
  const Graph graph = made(read_nccl_xml(
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x020000\"><nic>"
      "<net name=\"mlx5_0\" speed=\"100000\"/><net name=\"mlx5_1\" "
      "speed=\"100000\"/></nic></pci></cpu>"
      "</system>",
      "x.xml"));
  CHECK_THAT(write_nccl_xml(graph),
             Contains("<net name=\"mlx5_0\" speed=\"100000\" port=\"1\"/>") &&
                 Contains("<net name=\"mlx5_1\" speed=\"100000\" port=\"1\"/>"));
  check_round_trip(graph);
}

TEST_CASE("nccl write: a device without PCI keeps its position") {
  const Graph graph =
      make_machine("numa 0\n  soft rxe_0\nnuma 1\n  host 0000:80\n    gpu 80:01.0\n");
  CHECK_THAT(write_nccl_xml(graph), Contains("<nic>\n      <net name=\"rxe_0\"/>"));
  check_round_trip(graph);
}

TEST_CASE("nccl write: nodes that are omitted do not change the order of the others") {
  // Written, the devices of the host bridge stand beside the switch, and the first switch without
  // an address has lost its disk.
  check_round_trip(made(
      read_nccl_xml("<system version=\"1\"><cpu numaid=\"0\">"
                    "<pci busid=\"0000:80:00.0\" class=\"0x060000\">"
                    "<pci busid=\"0000:81:00.0\" class=\"0x0302\"/></pci>"
                    "<pci busid=\"0000:90:00.0\" class=\"0x0604\">"
                    "<pci busid=\"0000:91:00.0\" class=\"0x0302\"/></pci>"
                    "<pci class=\"0x0604\"><pci busid=\"0000:01:00.0\" class=\"0x0108\"/>"
                    "<pci busid=\"0000:03:00.0\" class=\"0x0302\"/></pci>"
                    "<pci class=\"0x0604\"><pci busid=\"0000:02:00.0\" class=\"0x0302\"/></pci>"
                    "</cpu></system>",
                    "x.xml")));
}

TEST_CASE("nccl write: a NIC without an address is written, whatever its ports and names") {
  const Graph graph =
      made(read_nccl_xml("<system version=\"1\"><cpu numaid=\"0\"><pci class=\"0x02\"><nic>"
                         "<net name=\"a\" port=\"1\" speed=\"100\"/>"
                         "<net name=\"a\" port=\"2\" speed=\"200\"/><net name=\"b\" port=\"1\"/>"
                         "</nic></pci></cpu></system>",
                         "x.xml"));
  REQUIRE(graph.nics().size() == 2);
  CHECK(label(graph[graph.nics()[0]]) == "a");
  CHECK(graph[graph.nics()[0]].nic_ports == std::vector<NicPort>{{1, 100}, {2, 200}});
  check_round_trip(graph);
}
