// SPDX-License-Identifier: Apache-2.0
//
// The network interface and PCI function of a device, in sysfs trees like those of a NIC's driver,
// of rxe and of siw.
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "plugin/device/netdev.h"
#include "plugin/device/sysfs.h"
#include "tests/support/catch.h"

namespace beeline {
namespace {

namespace fs = std::filesystem;

class Tree {
 public:
  Tree() {
    std::string name = (fs::temp_directory_path() / "beeline-netdev-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { fs::remove_all(root_); }

  const std::string& root() const { return root_; }

  void file(const std::string& path, const std::string& text) const {
    const fs::path full = fs::path(root_) / path;
    fs::create_directories(full.parent_path());
    std::ofstream(full) << text << '\n';
  }
  void link(const std::string& path, const std::string& target) const {
    const fs::path full = fs::path(root_) / path;
    fs::create_directories(full.parent_path());
    fs::create_directories(fs::path(root_) / target);
    fs::create_directory_symlink(fs::path(root_) / target, full);
  }

 private:
  std::string root_;
};

// The MAC 52:54:00:12:34:56, as siw puts it into its one GID.
constexpr Gid kSiwGid = {0x52, 0x54, 0x00, 0x12, 0x34, 0x56};

NetdevQuestion question(const Tree& tree, const std::vector<GidEntry>& gids, bool is_iwarp) {
  return {.sysfs_root = tree.root(), .ibdev = "soft0", .is_iwarp = is_iwarp, .gids = gids};
}

TEST_CASE("netdev: the GID table says it first", "[unit][device]") {
  const Tree tree;
  tree.file("class/infiniband/soft0/parent", "eth8");
  const std::vector<GidEntry> gids = {{.index = 0, .ndev = ""}, {.index = 2, .ndev = "eth7"}};
  CHECK(netdev_of(question(tree, gids, false)) == "eth7");
}

TEST_CASE("netdev: rxe names its parent even without an address", "[unit][device]") {
  const Tree tree;
  tree.file("class/infiniband/soft0/parent", "eth8");
  CHECK(netdev_of(question(tree, {}, false)) == "eth8");
}

TEST_CASE("netdev: the GID of an iWARP port begins with the interface's address",
          "[unit][device]") {
  const Tree tree;
  tree.file("class/net/eth1/address", "52:54:00:12:34:55");
  tree.file("class/net/eth2/address", "52:54:00:12:34:56");
  const std::vector<GidEntry> gids = {{.index = 0, .gid = kSiwGid}};
  CHECK(netdev_of(question(tree, gids, true)) == "eth2");
  CHECK(netdev_of(question(tree, gids, false)).empty());
  CHECK(netdev_of(question(tree, {}, true)).empty());
  const std::vector<GidEntry> strange = {{.index = 0, .gid = {0x52, 0x54, 0x00, 0x12, 0x34, 0x57}}};
  CHECK(netdev_of(question(tree, strange, true)).empty());
}

TEST_CASE("pci path: a device's own is preferred to its interface's", "[unit][device]") {
  const Tree tree;
  tree.link("class/infiniband/soft0/device", "devices/pci0000:15/0000:16:00.0");
  tree.link("class/net/eth7/device", "devices/pci0000:15/0000:17:00.0");
  CHECK(fs::path(pci_path_of(tree.root(), "soft0", "eth7")).filename() == "0000:16:00.0");
}

TEST_CASE("pci path: a soft device sits where its interface sits", "[unit][device]") {
  const Tree tree;
  tree.file("class/infiniband/soft0/parent", "eth7");
  tree.link("class/net/eth7/device", "devices/pci0000:20/0000:25:00.0/virtio5");
  CHECK(fs::path(pci_path_of(tree.root(), "soft0", "eth7")).filename() == "0000:25:00.0");
}

TEST_CASE("pci path: a device without a bus has none", "[unit][device]") {
  const Tree tree;
  tree.file("class/infiniband/soft0/parent", "veth0");
  tree.file("class/net/veth0/address", "52:54:00:12:34:56");
  CHECK(pci_path_of(tree.root(), "soft0", "veth0").empty());
  CHECK(pci_path_of(tree.root(), "soft0", "").empty());
}

TEST_CASE("card path: a function, and a virtual one, are placed at the card's first",
          "[unit][device]") {
  const Tree tree;
  tree.file("devices/pci0000:15/0000:16:00.0/numa_node", "0");
  tree.file("devices/pci0000:15/0000:16:00.1/numa_node", "0");
  tree.link("devices/pci0000:15/0000:16:02.3/physfn", "devices/pci0000:15/0000:16:00.1");
  tree.file("devices/pci0000:15/0000:17:00.1/numa_node", "0");
  const std::string bus = real_path(tree.root()) + "/devices/pci0000:15/";
  CHECK(card_path_of(bus + "0000:16:00.0") == bus + "0000:16:00.0");
  CHECK(card_path_of(bus + "0000:16:00.1") == bus + "0000:16:00.0");
  CHECK(card_path_of(bus + "0000:16:02.3") == bus + "0000:16:00.0");
  // Its first function is hidden, as in a virtual machine.
  CHECK(card_path_of(bus + "0000:17:00.1") == bus + "0000:17:00.1");
  CHECK(card_path_of("").empty());
}

}  // namespace
}  // namespace beeline
