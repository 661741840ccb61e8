// SPDX-License-Identifier: Apache-2.0
//
// Compares hwloc's reading of this machine, and of a host of a fabric, with hwloc's own export and
// with sysfs. It works on any machine, because the machine is compared with itself.
#include "topology/read/hwloc_reader.h"

#include <algorithm>
#include <cstdlib>

#include "softnic/spec/spec_toml.h"
#include "softnic/spec/sysfs_tree.h"
#include "tests/tools/topology/read/reading.h"
#include "tests/tools/topology/scratch_folder.h"
#include "topology/distance.h"
#include "topology/read/file.h"
#include "topology/read/live.h"
#include "topology/read/sysfs.h"
#include "topology/read/xml.h"

using namespace beeline::topology;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

void need_hwloc() {
  if (std::system("command -v lstopo-no-graphics >/dev/null") != 0)
    FAIL("lstopo-no-graphics is missing, with which this is compared: install hwloc-nox");
}

// The export of hwloc's own program. `variables` precede the command, `options` follow it.
std::string exported(const ScratchFolder& folder, const std::string& variables,
                     const std::string& options = "") {
  std::string file = folder.path() + "/machine.xml";
  const std::string command = variables + " lstopo-no-graphics --disallowed --of xml --force " +
                              options + " " + file + " 2>/dev/null";
  REQUIRE(std::system(command.c_str()) == 0);
  return file;
}

// Clears data that hwloc does not write to files, and data that depends on the source of device
// names.
Node without_sysfs(Node node) {
  node.link_now = {};
  node.link_max = {};
  node.nic_ports.clear();
  node.physical_function = kNoNode;
  node.subsystem_vendor = 0;
  node.subsystem_device = 0;
  node.bond.clear();
  node.pci_class &= 0xffff00;
  return node;
}

void check_equal_but_sysfs(const Graph& a, const Graph& b) {
  REQUIRE(a.size() == b.size());
  for (NodeIndex i = 0; i < a.size(); ++i) {
    CAPTURE(label(a[i]), label(b[i]));
    CHECK(without_sysfs(a[i]) == without_sysfs(b[i]));
  }
}

}  // namespace

TEST_CASE("hwloc: this machine reads the same live and from its own export") {
  need_hwloc();
  const ScratchFolder folder;
  const Graph live = made(read_hwloc());
  // With what hwloc finds worth showing, and with each and every device.
  const std::string options = GENERATE(as<std::string>{}, "", "--whole-io");
  // Without "x86", as in read_hwloc(): the processor's own name may differ from the kernel's.
  const Graph file =
      made(read_topology_file(exported(folder, "HWLOC_COMPONENTS=-pci,-x86", options)));
  check_equal_but_sysfs(live, file);
  CHECK(live.source() == "this machine");
  CHECK(file.source() == folder.path() + "/machine.xml (hwloc)");
  CHECK(live.size() > 1);
}

TEST_CASE("hwloc: a fabric's host is placed as sysfs places it") {
  need_hwloc();
  const char* const fabric = std::getenv("BL_TEST_FABRIC");  // NOLINT(concurrency-mt-unsafe)
  REQUIRE(fabric != nullptr);
  const softnic::FabricSpec spec = good(softnic::read_fabric_file(fabric));
  const ScratchFolder folder;
  const std::string host = folder.path() + "/host";
  REQUIRE(softnic::write_sysfs_tree(spec.hosts.at(0), host));
  const Graph by_sysfs = made(read_sysfs(host));
  const Graph by_hwloc = made(
      read_topology_file(exported(folder, "HWLOC_FSROOT=" + host + " HWLOC_COMPONENTS=-pci,-x86")));
  REQUIRE(by_hwloc.gpus().size() == 8);
  REQUIRE(by_hwloc.nics().size() == 8);
  const Distances one(by_sysfs);
  const Distances other(by_hwloc);
  for (std::size_t i = 0; i < 8; ++i) {
    const NodeIndex gpu = by_hwloc.gpus()[i];
    CHECK(by_hwloc[gpu].pci == by_sysfs[by_sysfs.gpus()[i]].pci);
    CHECK(by_hwloc[gpu].numa == by_sysfs[by_sysfs.gpus()[i]].numa);
    CHECK(by_hwloc[gpu].link_now == by_sysfs[by_sysfs.gpus()[i]].link_now);
    for (std::size_t j = 0; j < 8; ++j) {
      const NodeIndex nic = by_hwloc.nics()[j];
      CHECK(os_name(by_hwloc[nic], OsKind::kRdma) ==
            os_name(by_sysfs[by_sysfs.nics()[j]], OsKind::kRdma));
      CHECK(other.between(gpu, nic) == one.between(by_sysfs.gpus()[i], by_sysfs.nics()[j]));
    }
  }
}

TEST_CASE("hwloc: comments and empty lines in a file do no harm") {
  need_hwloc();
  const ScratchFolder folder;
  const std::string path = exported(folder, "");
  const Graph plain = made(read_topology_file(path));
  std::string text = good(beeline::read_whole_file(path, std::size_t{1} << 24));
  text.insert(text.find("<topology"), "\n<!-- a node; <topology version=\"9\"> -->\n\n");
  text.insert(text.find("<object"), "<!-- - -->");
  folder.write("comments.xml", text);
  const Graph read = made(read_topology_file(folder.path() + "/comments.xml"));
  CHECK(std::ranges::equal(read.nodes(), plain.nodes()));
}

TEST_CASE("hwloc: a truncated file, or one with entities, is not passed to hwloc") {
  need_hwloc();
  const ScratchFolder folder;
  const std::string whole =
      good(beeline::read_whole_file(exported(folder, ""), std::size_t{1} << 24));
  const std::string path = folder.path() + "/x.xml";
  const auto error = [&](const std::string& text) {
    folder.write("x.xml", text);
    return error_of(read_topology_file(path));
  };
  for (std::size_t size = 0; size + 16 < whole.size(); size += whole.size() / 40) {
    CHECK_THAT(error(whole.substr(0, size)), StartsWith(path + ":") && Contains("not valid XML"));
  }
  CHECK_THAT(error("<!DOCTYPE topology [<!ENTITY a \"b\">]><topology/>"), Contains("a DTD"));
  CHECK_THAT(error("<topology version=\"2.0\"><object type=\"Donkey\"/></topology>"),
             Contains("hwloc cannot read it"));
}

TEST_CASE("topology file: the error for a file of hwloc 3 says how to write it for hwloc 2") {
  need_hwloc();
  const ScratchFolder folder;
  folder.write("new.xml", "<topology version=\"3.0\"><object type=\"Machine\"/></topology>");
  CHECK_THAT(error_of(read_topology_file(folder.path() + "/new.xml")),
             Contains("new.xml: written by hwloc 3") && Contains("lstopo --of v2xml"));
  folder.write("odd.xml", "<topology version=\"\"><object/></topology>");
  CHECK_THAT(error_of(read_topology_file(folder.path() + "/odd.xml")), !Contains("written by"));
}

TEST_CASE("topology file: the error for another format says how to make a valid file") {
  const ScratchFolder folder;
  folder.write("x.xml", "\n<html/>");
  CHECK_THAT(error_of(read_topology_file(folder.path() + "/x.xml")),
             Contains("x.xml:2: <html> is neither") && Contains("lstopo --of xml"));
  folder.write("y.xml", "<system version=\"1\"/>");
  CHECK(made(read_topology_file(folder.path() + "/y.xml")).size() == 1);
}

TEST_CASE("live: another root than /sys is read from there") {
  const ScratchFolder folder;
  CHECK(read_live(folder.path()).source == folder.path());
  CHECK(good(Graph::make(read_live("/sys"))).source() == "this machine");
}
