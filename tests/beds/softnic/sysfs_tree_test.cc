// SPDX-License-Identifier: Apache-2.0
// The sysfs tree of a host: every file that programs read, in the kernel's format.
#include "softnic/spec/sysfs_tree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "softnic/spec/pci_config.h"
#include "softnic/spec/spec_toml.h"
#include "softnic/spec/sysfs_writer.h"
#include "tests/support/catch.h"

namespace {

namespace fs = std::filesystem;
using softnic::FabricSpec;
using softnic::HostSpec;

class ScratchDir {
 public:
  ScratchDir() {
    char path[] = "/tmp/softnic-sysfs-XXXXXX";
    path_ = mkdtemp(path);
  }
  ~ScratchDir() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One host's tree, from a fabric of the test suite.
class Tree {
 public:
  Tree(const std::string& fabric, std::size_t host) : Tree(must_read(fabric).hosts.at(host)) {}
  explicit Tree(const HostSpec& host) : host_(host) {
    const auto written = softnic::write_sysfs_tree(host_, root());
    if (!written) FAIL(written.error().text);
  }

  const HostSpec& host() const { return host_; }
  std::string root() const { return scratch_.path() + "/" + host_.name; }
  std::string full(const std::string& path) const { return root() + "/" + path; }
  bool has(const std::string& path) const { return fs::exists(full(path)); }
  std::string target(const std::string& path) const { return fs::read_symlink(full(path)); }
  std::string resolved(const std::string& path) const {
    return fs::relative(fs::canonical(full(path)), root()).string();
  }
  std::string text(const std::string& path) const {
    std::ifstream file(full(path));
    if (!file) return "(no such file)";
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }

 private:
  static FabricSpec must_read(const std::string& name) {
    auto spec = softnic::read_fabric_file(SOFTNIC_FABRICS_DIR "/" + name);
    if (!spec) FAIL(spec.error().text);
    return *std::move(spec);
  }
  ScratchDir scratch_;
  HostSpec host_;
};

const std::string kDev = "class/infiniband/softnic1/";
const std::string kFunction = "devices/pci0000:10/0000:10:01.0/0000:11:00.0";

}  // namespace

TEST_CASE("sysfs_tree: a device shows the kernel's attributes", "[unit]") {
  const Tree tree(softnic::default_fabric().hosts[1]);
  CHECK(tree.text(kDev + "node_type") == "1: CA\n");
  CHECK(tree.text(kDev + "node_guid") == "0250:0103:0000:0100\n");
  CHECK(tree.text(kDev + "sys_image_guid") == "0250:0103:0000:0100\n");
  CHECK(tree.text(kDev + "fw_ver") == "softnic\n");
  CHECK(tree.text(kDev + "hca_type") == "softnic\n");
  CHECK(tree.text(kDev + "board_id") == "SOFTNIC0000001\n");
  CHECK(tree.text(kDev + "node_desc") == "h1 softnic1\n");
}

TEST_CASE("sysfs_tree: a RoCE port shows the kernel's attributes", "[unit]") {
  const Tree tree(softnic::default_fabric().hosts[1]);
  const std::string port = kDev + "ports/1/";
  CHECK(tree.text(port + "state") == "4: ACTIVE\n");
  CHECK(tree.text(port + "phys_state") == "5: LinkUp\n");
  CHECK(tree.text(port + "rate") == "100 Gb/sec (4X EDR)\n");
  CHECK(tree.text(port + "lid") == "0x0\n");
  CHECK(tree.text(port + "lid_mask_count") == "0\n");
  CHECK(tree.text(port + "sm_lid") == "0x0\n");
  CHECK(tree.text(port + "sm_sl") == "0\n");
  CHECK(tree.text(port + "cap_mask") == "0x00010000\n");
  CHECK(tree.text(port + "link_layer") == "Ethernet\n");
  CHECK(tree.text(port + "pkeys/0") == "0xffff\n");
  CHECK(tree.text(port + "counters/port_xmit_data") == "0\n");
  CHECK(tree.text(port + "hw_counters/out_of_sequence") == "0\n");
}

TEST_CASE("sysfs_tree: the GID table has all its entries, the empty ones without a type",
          "[unit]") {
  const Tree tree(softnic::default_fabric().hosts[1]);
  const std::string port = kDev + "ports/1/";
  CHECK(tree.text(port + "gids/0") == "fe80:0000:0000:0000:0050:01ff:fe00:0101\n");
  CHECK(tree.text(port + "gids/3") == "0000:0000:0000:0000:0000:ffff:0a01:0101\n");
  CHECK(tree.text(port + "gids/15") == "0000:0000:0000:0000:0000:0000:0000:0000\n");
  CHECK_FALSE(tree.has(port + "gids/16"));
  CHECK(tree.text(port + "gid_attrs/types/2") == "IB/RoCE v1\n");
  CHECK(tree.text(port + "gid_attrs/types/3") == "RoCE v2\n");
  CHECK(tree.text(port + "gid_attrs/types/4").empty());
  CHECK(tree.text(port + "gid_attrs/ndevs/3") == "eth1\n");
  CHECK(tree.text(port + "gid_attrs/ndevs/4").empty());
}

TEST_CASE("sysfs_tree: an InfiniBand port has LIDs and no interface", "[unit]") {
  const Tree tree("ib-2x2.toml", 1);
  const std::string port = kDev + "ports/1/";
  CHECK(tree.text(port + "link_layer") == "InfiniBand\n");
  CHECK(tree.text(port + "lid") == "0x4\n");
  CHECK(tree.text(port + "sm_lid") == "0x1\n");
  CHECK(tree.text(port + "rate") == "200 Gb/sec (4X HDR)\n");
  CHECK(tree.text(port + "gids/0") == "fe80:0000:0000:0000:0250:0103:0000:0101\n");
  CHECK(tree.text(port + "gid_attrs/types/0") == "IB/RoCE v1\n");
  CHECK(tree.text(port + "gid_attrs/ndevs/0").empty());
  CHECK(tree.text(kDev + "device/class") == "0x020700\n");
  CHECK(fs::is_empty(tree.full("class/net")));
}

TEST_CASE("sysfs_tree: class entries are relative links into the PCI tree", "[unit]") {
  const Tree tree(softnic::default_fabric().hosts[0]);
  CHECK(tree.target("class/infiniband/softnic0") == "../../" + kFunction + "/infiniband/softnic0");
  CHECK(tree.target("class/infiniband/softnic0/device") == "../../../0000:11:00.0");
  CHECK(tree.target("class/infiniband/softnic0/subsystem") == "../../../../../../class/infiniband");
  CHECK(tree.target("bus/pci/devices/0000:11:00.0") == "../../../" + kFunction);
  CHECK(tree.target(kFunction + "/subsystem") == "../../../../bus/pci");
  CHECK(tree.resolved("class/infiniband/softnic0/device") == kFunction);
  CHECK(tree.resolved("class/infiniband_verbs/uverbs0/device") == kFunction);
  CHECK(tree.resolved("class/net/eth0/device") == kFunction);
  CHECK(tree.resolved("class/net/eth0/device/driver") == "bus/pci/drivers/softnic");
  CHECK(tree.resolved("bus/pci/devices/0000:11:00.0/../0000:11:00.0") == kFunction);
  CHECK(tree.resolved("class/pci_bus/0000:11/../../0000:11:00.0") == kFunction);
  CHECK(tree.resolved("sys/class/net/eth0") == kFunction + "/net/eth0");
}

TEST_CASE("sysfs_tree: no link dangles", "[unit]") {
  const Tree tree("dgx-8rail.toml", 0);
  for (const auto& entry : fs::recursive_directory_iterator(tree.root()))
    if (entry.is_symlink() && !fs::exists(entry.path())) FAIL_CHECK(entry.path());
}

TEST_CASE("sysfs_tree: every uverbs device names its RDMA device", "[unit]") {
  const Tree tree(softnic::default_fabric().hosts[0]);
  CHECK(tree.text("class/infiniband_verbs/abi_version") == "6\n");
  CHECK(tree.text("class/infiniband_verbs/uverbs1/ibdev") == "softnic1\n");
  CHECK(tree.text("class/infiniband_verbs/uverbs1/dev") == "231:193\n");
  CHECK(tree.text("class/infiniband_verbs/uverbs1/abi_version") == "1\n");
}

TEST_CASE("sysfs_tree: the interface of a RoCE port has its address and speed", "[unit]") {
  const Tree tree("asymmetric.toml", 0);
  CHECK(tree.text("class/net/eth1/address") == "02:50:00:00:01:01\n");
  CHECK(tree.text("class/net/eth0/mtu") == "9000\n");
  CHECK(tree.text("class/net/eth1/mtu") == "1500\n");
  CHECK(tree.text("class/net/eth1/speed") == "25000\n");
  CHECK(tree.text("class/net/eth1/operstate") == "up\n");
  CHECK(tree.text("class/net/eth1/carrier") == "1\n");
}

TEST_CASE("sysfs_tree: both ports of one device have an interface on its function", "[unit]") {
  const Tree tree("asymmetric.toml", 1);
  CHECK(tree.text("class/infiniband/dual0/ports/2/state") == "1: DOWN\n");
  CHECK(tree.text("class/infiniband/dual0/ports/2/phys_state") == "3: Disabled\n");
  CHECK(tree.text("class/net/ens1f1/operstate") == "down\n");
  CHECK(tree.text("class/net/ens1f1/dev_port") == "1\n");
  CHECK(tree.resolved("class/net/ens1f0/device") == tree.resolved("class/net/ens1f1/device"));
  CHECK(tree.text("class/infiniband/dual0/device/numa_node") == "-1\n");
  CHECK(tree.text("class/infiniband/dual0/device/local_cpulist") == "0-3\n");
}

TEST_CASE("sysfs_tree: NICs and GPUs are in the PCI tree with class, link and NUMA node",
          "[unit]") {
  const Tree tree("dgx-8rail.toml", 0);
  const std::string nic = "class/infiniband/softnic6/device/";
  CHECK(tree.resolved(nic) ==
        "devices/pci0000:b7/0000:b7:01.0/0000:b8:00.0/0000:b9:00.0/0000:ba:00.0");
  CHECK(tree.text(nic + "vendor") == "0xb1ff\n");
  CHECK(tree.text(nic + "class") == "0x020000\n");
  CHECK(tree.text(nic + "numa_node") == "1\n");
  CHECK(tree.text(nic + "local_cpulist") == "4-7\n");
  CHECK(tree.text(nic + "local_cpus") == "f0\n");
  CHECK(tree.text(nic + "current_link_speed") == "32.0 GT/s PCIe\n");
  CHECK(tree.text(nic + "max_link_width") == "16\n");
  const std::string gpu = "bus/pci/devices/0000:bc:00.0/";
  CHECK(tree.text(gpu + "vendor") == "0x10de\n");
  CHECK(tree.text(gpu + "class") == "0x030200\n");
  CHECK(tree.text(gpu + "../class") == "0x060400\n");
  CHECK(tree.text(gpu + "../vendor") == "0x1000\n");
  CHECK(tree.text(gpu + "../../../vendor") == "0x8086\n");
}

TEST_CASE("sysfs_tree: a bridge's config space spans the buses below it", "[unit]") {
  const Tree tree("dgx-8rail.toml", 0);
  const std::string config = tree.text("bus/pci/devices/0000:15:01.0/config");
  REQUIRE(config.size() == 256);
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(config[at] & 0xff); };
  CHECK(byte(0x0e) == 1);
  CHECK(byte(0x18) == 0x15);
  CHECK(byte(0x19) == 0x16);
  CHECK(byte(0x1a) == 0x1b);
}

TEST_CASE("sysfs_tree: the tree has NUMA nodes and CPUs", "[unit]") {
  const Tree tree("dgx-8rail.toml", 0);
  const std::string system = "devices/system/";
  CHECK(tree.text(system + "node/online") == "0-1\n");
  CHECK(tree.text(system + "node/node1/cpulist") == "4-7\n");
  CHECK(tree.text(system + "node/node1/cpumap") == "f0\n");
  CHECK(tree.text(system + "node/node1/distance") == "21 10\n");
  CHECK(tree.text(system + "cpu/online") == "0-7\n");
  CHECK(tree.text(system + "cpu/cpu5/topology/physical_package_id") == "1\n");
  CHECK(tree.text(system + "cpu/cpu5/topology/package_cpus_list") == "4-7\n");
  CHECK(tree.text(system + "cpu/cpu5/topology/thread_siblings") == "20\n");
}

TEST_CASE("sysfs_tree: CPU masks of many CPUs come in groups of 32", "[unit]") {
  FabricSpec spec = softnic::default_fabric();
  spec.hosts[0].numa_nodes = 9;
  spec.hosts[0].devices[0].numa = 8;
  const Tree tree(spec.hosts[0]);
  CHECK(tree.text("class/infiniband/softnic0/device/local_cpus") == "f,00000000\n");
  CHECK(tree.text("class/infiniband/softnic1/device/local_cpus") == "0,0000000f\n");
}

TEST_CASE("sysfs_tree: a port that goes down changes alone, and comes back", "[unit]") {
  const Tree tree(softnic::default_fabric().hosts[0]);
  softnic::show_port_state(tree.root(), "softnic0", 1, false);
  CHECK(tree.text("class/infiniband/softnic0/ports/1/state") == "1: DOWN\n");
  CHECK(tree.text("class/infiniband/softnic0/ports/1/phys_state") == "3: Disabled\n");
  CHECK(tree.text("class/net/eth0/operstate") == "down\n");
  CHECK(tree.text("class/net/eth0/carrier") == "0\n");
  CHECK(tree.text("class/infiniband/softnic1/ports/1/state") == "4: ACTIVE\n");
  CHECK(tree.text("class/net/eth1/operstate") == "up\n");
  CHECK(tree.text("class/net/eth1/carrier") == "1\n");
  softnic::show_port_state(tree.root(), "softnic0", 1, true);
  CHECK(tree.text("class/infiniband/softnic0/ports/1/state") == "4: ACTIVE\n");
  CHECK(tree.text("class/net/eth0/operstate") == "up\n");
}

TEST_CASE("sysfs_tree: the second port's state reaches the second interface", "[unit]") {
  const Tree tree("asymmetric.toml", 1);
  softnic::show_port_state(tree.root(), "dual0", 2, true);
  CHECK(tree.text("class/infiniband/dual0/ports/2/state") == "4: ACTIVE\n");
  CHECK(tree.text("class/net/ens1f1/operstate") == "up\n");
  softnic::show_port_state(tree.root(), "dual0", 1, false);
  CHECK(tree.text("class/net/ens1f0/operstate") == "down\n");
  CHECK(tree.text("class/net/ens1f1/operstate") == "up\n");
}

TEST_CASE("sysfs_tree: showing the state of an unknown port does nothing", "[unit]") {
  const Tree tree(softnic::default_fabric().hosts[0]);
  softnic::show_port_state(tree.root(), "softnic7", 1, false);
  softnic::show_port_state(tree.root(), "softnic0", 3, false);
  CHECK_FALSE(tree.has("class/infiniband/softnic7"));
  CHECK_FALSE(tree.has("class/infiniband/softnic0/ports/3"));
}

TEST_CASE("sysfs_tree: equal files share one inode, so that a big fabric stays small", "[unit]") {
  const Tree tree("scale-32.toml", 0);
  std::uint64_t files = 0;
  std::set<ino_t> inodes;
  for (const auto& entry : fs::recursive_directory_iterator(tree.root())) {
    struct stat st {};
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    REQUIRE(stat(entry.path().c_str(), &st) == 0);
    ++files;
    inodes.insert(st.st_ino);
  }
  CHECK(files > 1000);
  CHECK(inodes.size() < 250);
}

TEST_CASE("sysfs_tree: a file that cannot be written is named", "[unit]") {
  ScratchDir scratch;
  std::ofstream(scratch.path() + "/h0") << "in the way";
  const auto written =
      softnic::write_sysfs_tree(softnic::default_fabric().hosts[0], scratch.path() + "/h0");
  REQUIRE_FALSE(written.has_value());
  CHECK(written.error().text ==
        "cannot create the directory " + scratch.path() + "/h0/class: Not a directory");
}
