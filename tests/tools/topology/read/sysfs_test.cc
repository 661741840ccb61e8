// SPDX-License-Identifier: Apache-2.0
//
// Tests with complete and partial sysfs trees, made from machines.
#include "topology/read/sysfs.h"

#include <algorithm>
#include <map>
#include <random>

#include "softnic/spec/spec_toml.h"
#include "softnic/spec/sysfs_tree.h"
#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"
#include "tests/tools/topology/read/random_machine.h"
#include "tests/tools/topology/read/reading.h"
#include "tests/tools/topology/read/sysfs_image.h"
#include "topology/assignment.h"
#include "topology/read/sysfs_devices.h"

using namespace beeline::topology;
namespace fs = std::filesystem;

namespace {

// All that a server has, on two packages.
const char* const kServer =
    "package 0\n"
    "  numa 0 cpus=0-31,64-95\n"
    "    host 0000:17\n"
    "      root 17:01.0 max=32x16\n"
    "        up 18:00.0 now=32x16 max=32x16\n"
    "          down 19:00.0 max=32x16\n"
    "            gpu 1a:00.0 now=2.5x16 max=32x16\n"
    "          down 19:01.0 max=32x16\n"
    "            nic 1b:00.0 mlx5_0 speed=400000 now=16x8 max=32x16\n"
    "            vf 1b:00.1 mlx5_1 pf=1b:00.0 speed=400000\n"
    "    host 10000:e0\n"
    "      root 10000:e0:06.0\n"
    "        other 10000:e1:00.0\n"
    "package 1\n"
    "  numa 1 cpus=32-63\n"
    "    host 0000:80\n"
    "      nic 80:01.0 mlx5_2 speed=100000 bond=bond0\n"
    "  numa 2 cpus=96\n";

GraphParts server() {
  GraphParts parts = read_machine(kServer);
  add_classes(parts);
  return parts;
}

Graph server_graph() {
  GraphParts parts = server();
  for (Node& node : parts.nodes) {
    if (!node.bond.empty()) node.os_devices.push_back({OsKind::kInterface, "ens1"});
  }
  return good(Graph::make(std::move(parts)));
}

Graph read(const ScratchFolder& folder) { return good(Graph::make(read_sysfs(folder.path()))); }

void check_equal(const Graph& a, const Graph& b) {
  REQUIRE(a.size() == b.size());
  for (NodeIndex i = 0; i < a.size(); ++i) {
    CAPTURE(label(a[i]), label(b[i]));
    CHECK(a[i] == b[i]);
  }
}

bool has_remark(const Graph& graph, const std::string& what) {
  return std::ranges::any_of(graph.remarks(), [&what](const std::string& remark) {
    return remark.find(what) != std::string::npos;
  });
}

// By names: "GPU 0000:1a:00.0" -> "mlx5_0".
std::map<std::string, std::string> first_nics(const Graph& graph) {
  std::map<std::string, std::string> nics;
  for (const GpuAssignment& given : assign(graph).gpus) {
    nics[label(graph[given.gpu])] = given.nics.empty() ? "" : label(graph[given.nics[0]]);
  }
  return nics;
}

}  // namespace

TEST_CASE("sysfs: a server") {
  const ScratchFolder folder;
  const Graph graph = server_graph();
  write_sysfs_image(graph, folder);
  const Graph got = read(folder);
  check_equal(graph, got);
  CHECK(got.remarks().empty());
  CHECK(got.source() == folder.path());
}

TEST_CASE("sysfs: every kind of machine has the same assignment as its description") {
  for (const std::string& text :
       {machines::one_nic_each(), machines::tied_in_pairs(), machines::two_gpus_a_nic(),
        machines::one_nic_for_all(), machines::one_root_port(), machines::far_socket(),
        machines::dual_port(), machines::flat_virtual_machine()}) {
    const ScratchFolder folder;
    GraphParts parts = read_machine(text);
    add_classes(parts);
    const Graph graph = good(Graph::make(std::move(parts)));
    write_sysfs_image(graph, folder);
    CHECK(first_nics(read(folder)) == first_nics(graph));
  }
}

TEST_CASE("sysfs: functions of the chipset and bridges without devices are omitted") {
  const ScratchFolder folder;
  write_sysfs_image(server_graph(), folder);
  const std::string chipset = "devices/pci0000:17/0000:17:1f.0";
  folder.write(chipset + "/class", "0x088000\n");
  folder.link("bus/pci/devices/0000:17:1f.0", chipset);
  const std::string port = "devices/pci0000:17/0000:17:02.0";
  folder.write(port + "/class", "0x060400\n");
  folder.link("bus/pci/devices/0000:17:02.0", port);
  check_equal(server_graph(), read(folder));
}

TEST_CASE("sysfs: a function of class 0 is kept, one whose class cannot be read is omitted") {
  const ScratchFolder folder;
  folder.write("devices/pci0000:17/0000:17:02.0/class", "0x000200\n");
  folder.link("bus/pci/devices/0000:17:02.0", "devices/pci0000:17/0000:17:02.0");
  folder.write("devices/pci0000:17/0000:17:03.0/vendor", "0x1af4\n");
  folder.link("bus/pci/devices/0000:17:03.0", "devices/pci0000:17/0000:17:03.0");
  const Graph graph = read(folder);
  CHECK(find_pci(graph, *parse_pci_address("0000:17:02.0")) != kNoNode);
  CHECK(find_pci(graph, *parse_pci_address("0000:17:03.0")) == kNoNode);
}

TEST_CASE("sysfs: completes hwloc's short class, and keeps it if there is no file") {
  const ScratchFolder folder;
  folder.write("bus/pci/devices/0000:17:02.0/class", "0x010802\n");
  std::vector<Node> nodes{
      {.kind = NodeKind::kMachine},
      {.parent = 0, .pci = parse_pci_address("17:02.0"), .pci_class = 0x010800},
      {.parent = 0, .pci = parse_pci_address("17:03.0"), .pci_class = 0x020000}};
  Remarks remarks;
  add_sysfs_devices(nodes, folder.path(), remarks);
  CHECK(nodes[1].pci_class == 0x010802);
  CHECK(nodes[2].pci_class == 0x020000);
}

TEST_CASE("sysfs: an old InfiniBand controller is a NIC, and its ports have a state") {
  const ScratchFolder folder;
  folder.write("devices/pci0000:17/0000:17:02.0/class", "0x0c0600\n");
  folder.link("bus/pci/devices/0000:17:02.0", "devices/pci0000:17/0000:17:02.0");
  const std::string ports = "devices/pci0000:17/0000:17:02.0/infiniband/mthca0/ports/";
  for (const char* port : {"1", "2", "3", "4"})
    folder.write(ports + port + "/rate", "10 Gb/sec (4X)\n");
  folder.write(ports + "1/state", "4: ACTIVE\n");
  folder.write(ports + "2/state", "1: DOWN\n");
  folder.write(ports + "2/link_layer", "InfiniBand\n");
  folder.write(ports + "4/state", "5: ACTIVE_DEFER\n");
  folder.link("class/infiniband/mthca0", "devices/pci0000:17/0000:17:02.0/infiniband/mthca0");
  const Graph graph = read(folder);
  REQUIRE(graph.nics().size() == 1);
  CHECK(graph[graph.nics()[0]].nic_ports ==
        std::vector<NicPort>{{1, 10'000, PortState::kActive},
                             {2, 10'000, PortState::kDown, LinkLayer::kInfiniBand},
                             {3, 10'000, PortState::kUnknown},
                             {4, 10'000, PortState::kActive}});
}

TEST_CASE("sysfs: a soft device is placed where its interface is, or by itself") {
  const ScratchFolder folder;
  const std::string card = "devices/pci0000:00/0000:00:03.0";
  folder.write(card + "/class", "0x020000\n");
  folder.write(card + "/virtio2/net/eth0/mtu", "1500\n");
  folder.link("bus/pci/devices/0000:00:03.0", card);
  folder.link("class/net/eth0", card + "/virtio2/net/eth0");
  folder.write("devices/virtual/infiniband/rxe_0/parent", "eth0\n");
  folder.write("devices/virtual/infiniband/siw_0/parent", "lo\n");
  folder.link("class/infiniband/rxe_0", "devices/virtual/infiniband/rxe_0");
  folder.link("class/infiniband/siw_0", "devices/virtual/infiniband/siw_0");
  const Graph graph = read(folder);
  REQUIRE(graph.nics().size() == 2);
  CHECK(graph[graph.nics()[0]].pci == parse_pci_address("0000:00:03.0"));
  CHECK(os_name(graph[graph.nics()[0]], OsKind::kRdma) == "rxe_0");
  CHECK(label(graph[graph.nics()[1]]) == "siw_0");
  CHECK(!graph[graph.nics()[1]].pci);
}

TEST_CASE("sysfs: a soft iWARP device is placed where the interface with its address is") {
  const ScratchFolder folder;
  const auto add_card = [&folder](const std::string& address, const std::string& name,
                                  const std::string& mac) {
    const std::string card = "devices/pci0000:00/" + address;
    folder.write(card + "/class", "0x020000\n");
    folder.write(card + "/net/" + name + "/address", mac + "\n");
    folder.link("bus/pci/devices/" + address, card);
    folder.link("class/net/" + name, card + "/net/" + name);
  };
  const auto add_siw = [&folder](const std::string& name, const std::string& gid) {
    const std::string device = "devices/virtual/infiniband/" + name;
    folder.write(device + "/node_type", "4: RNIC\n");
    folder.write(device + "/ports/1/gids/0", gid + "\n");
    folder.link("class/infiniband/" + name, device);
  };
  add_card("0000:00:03.0", "eth0", "52:54:00:00:00:1a");
  add_card("0000:00:04.0", "eth1", "52:54:00:00:00:1b");
  // A VLAN of eth1, whose name comes first.
  folder.write("devices/virtual/net/a7/address", "52:54:00:00:00:1b\n");
  folder.link("class/net/a7", "devices/virtual/net/a7");
  folder.write("devices/virtual/net/b0/address", "\n");
  folder.link("class/net/b0", "devices/virtual/net/b0");
  add_siw("siw_1", "5254:0000:001b:0000:0000:0000:0000:0000");
  add_siw("siw_2", "5254:0000:001c:0000:0000:0000:0000:0000");
  const Graph graph = read(folder);
  REQUIRE(graph.nics().size() == 2);
  CHECK(graph[graph.nics()[0]].pci == parse_pci_address("0000:00:04.0"));
  CHECK(label(graph[graph.nics()[0]]) == "siw_1");
  CHECK(!graph[graph.nics()[1]].pci);
  CHECK(label(graph[graph.nics()[1]]) == "siw_2");
}

TEST_CASE("sysfs: remarks say what cannot be seen") {
  const ScratchFolder folder;
  write_sysfs_image(server_graph(), folder);
  SECTION("no RDMA") {
    fs::remove_all(folder.path() + "/class/infiniband");
    const Graph graph = read(folder);
    CHECK(graph.nics().empty());
    CHECK(graph.gpus().size() == 1);
    CHECK(has_remark(graph, "RDMA devices cannot be seen"));
  }
  SECTION("no NUMA nodes: devices still say theirs") {
    fs::remove_all(folder.path() + "/devices/system");
    const Graph graph = read(folder);
    CHECK(graph[graph.gpus()[0]].numa == 0);
    CHECK(has_remark(graph, "NUMA nodes cannot be seen"));
  }
  SECTION("no PCI: NICs by name") {
    fs::remove_all(folder.path() + "/bus");
    const Graph graph = read(folder);
    CHECK(graph.gpus().empty());
    CHECK(graph.nics().size() == 3);
    CHECK(has_remark(graph, "PCI devices cannot be seen"));
  }
  SECTION("nothing") {
    const Graph graph = good(Graph::make(read_sysfs(folder.path() + "/nowhere")));
    CHECK(graph.size() == 1);
    CHECK(graph.remarks().size() == 3);
  }
  SECTION("a copy without links") {
    for (const char* name : {"0000:1a:00.0", "0000:1b:00.0"}) {
      const fs::path link = folder.path() + "/bus/pci/devices/" + name;
      const fs::path target = fs::canonical(link);
      fs::remove(link);
      fs::copy(target, link, fs::copy_options::recursive);
    }
    const Graph graph = read(folder);
    CHECK(graph.gpus().size() == 1);
    CHECK(graph[graph.gpus()[0]].numa == 0);
    CHECK(has_remark(graph, "0000:1a:00.0 and 1 more: position in the PCI tree unknown"));
    CHECK_FALSE(has_remark(graph, "0000:1b:00.0"));
  }
  SECTION("a NUMA node that the firmware does not tell") {
    for (const char* name :
         {"1a:00.0", "1b:00.0", "1b:00.1", "18:00.0", "19:00.0", "19:01.0", "17:01.0"}) {
      const std::string path = folder.path() + "/bus/pci/devices/0000:" + name + "/numa_node";
      std::ofstream(path) << "-1\n";
    }
    const Graph graph = read(folder);
    CHECK(graph[graph.gpus()[0]].numa == -1);
    CHECK(has_remark(graph, "GPU 0000:1a:00.0 and 2 more: no NUMA node is reported"));
  }
}

TEST_CASE("sysfs: with any file or folder missing or invalid, the result is a machine") {
  const ScratchFolder whole;
  write_sysfs_image(server_graph(), whole);
  for (unsigned seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const ScratchFolder part;
    fs::copy(whole.path(), part.path() + "/sys",
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(part.path() + "/sys")) {
      all.push_back(entry.path());
    }
    std::ranges::sort(all);
    for (const fs::path& path : all) {
      if (random() % 10 != 0) continue;
      std::error_code gone;
      if (fs::is_regular_file(fs::symlink_status(path, gone)) && random() % 2 == 0) {
        std::ofstream(path) << "-99999999999 nonsense \xff";
      } else {
        fs::remove_all(path, gone);
      }
    }
    const auto graph = Graph::make(read_sysfs(part.path() + "/sys"));
    if (!graph) FAIL_CHECK(graph.error().text);
  }
}

TEST_CASE("sysfs: cycles of symbolic links end") {
  const ScratchFolder folder;
  for (const char* name : {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"}) {
    folder.write(std::string("devices/") + name + "/class", "0x030200\n");
  }
  const auto link = [&folder](const std::string& name, const std::string& target) {
    fs::create_directories(folder.path() + "/bus/pci/devices");
    fs::create_symlink(target, folder.path() + "/bus/pci/devices/" + name);
  };
  fs::create_directories(folder.path() + "/pci0000:00/0000:01:00.0/0000:02:00.0/0000:01:00.0");
  fs::create_directories(folder.path() + "/pci0000:00/0000:02:00.0/0000:01:00.0/0000:02:00.0");
  for (const char* end : {"pci0000:00/0000:01:00.0/0000:02:00.0/0000:01:00.0",
                          "pci0000:00/0000:02:00.0/0000:01:00.0/0000:02:00.0"}) {
    folder.write(std::string(end) + "/class", "0x030200\n");
  }
  link("0000:01:00.0", "../../../pci0000:00/0000:01:00.0/0000:02:00.0/0000:01:00.0");
  link("0000:02:00.0", "../../../pci0000:00/0000:02:00.0/0000:01:00.0/0000:02:00.0");
  const auto graph = Graph::make(read_sysfs(folder.path()));
  if (!graph) FAIL(graph.error().text);
}

TEST_CASE("sysfs: the hosts of a fabric have their GPUs beside their NICs") {
  const char* const file = std::getenv("BL_TEST_FABRIC");  // NOLINT(concurrency-mt-unsafe)
  REQUIRE(file != nullptr);
  const softnic::FabricSpec spec = good(softnic::read_fabric_file(file));
  const ScratchFolder folder;
  const auto written = softnic::write_sysfs_tree(spec.hosts.at(0), folder.path());
  REQUIRE(written);
  const Graph graph = read(folder);
  CHECK(graph.gpus().size() == 8);
  CHECK(graph.nics().size() == 8);
  CHECK(graph.remarks().empty());
  int number = 0;
  for (const GpuAssignment& given : assign(graph).gpus) {
    CHECK(given.distance == Distance::kPix);
    REQUIRE(given.nics.size() == 1);
    CHECK(label(graph[given.nics[0]]) == "softnic" + std::to_string(number));
    CHECK(graph[given.nics[0]].nic_ports ==
          std::vector<NicPort>{{1, 400'000, PortState::kActive, LinkLayer::kEthernet}});
    CHECK(graph[given.gpu].numa == number / 4);
    ++number;
  }
}
