// SPDX-License-Identifier: Apache-2.0
//
// The counters of ports in trees like /sys, as the drivers of several vendors make them.
#include "tests/support/catch.h"
#include "tests/tools/topology/scratch_folder.h"
#include "tools/export/port_counters.h"

namespace beeline::exporter {
namespace {

class SysTree {
 public:
  void put(const std::string& device, const std::string& file, const std::string& text) const {
    folder_.write("class/infiniband/" + device + "/ports/1/" + file, text + '\n');
  }
  std::vector<PortReading> read(const std::set<std::string>& wanted) const {
    return read_ports(checks::Tree("", folder_.path()), wanted);
  }

 private:
  topology::ScratchFolder folder_;
};

std::optional<std::uint64_t> value(const PortReading& port, std::string_view name) {
  for (const auto& [counter, number] : port.values) {
    if (counter->name == name) return number;
  }
  return std::nullopt;
}

TEST_CASE("export: counters of several vendors have one name", "[tools]") {
  const SysTree tree;
  tree.put("mlx5_0", "hw_counters/np_cnp_sent", "1");
  tree.put("old", "hw_counters/tx_cnp_pkts", "2");
  tree.put("new", "hw_counters/np_cnp_pkts", "3");
  tree.put("irdma0", "hw_counters/cnpSent", "4");
  tree.put("ionic_0", "hw_counters/tx_rdma_cnp_pkts", "5");
  tree.put("mana_0", "hw_counters/sent_cnps", "6");
  const auto ports = tree.read({"mlx5_0:1", "old:1", "new:1", "irdma0:1", "ionic_0:1", "mana_0:1"});
  REQUIRE(ports.size() == 6);
  std::uint64_t sum = 0;
  for (const PortReading& port : ports) {
    CHECK(port.values.size() == 1);
    sum += value(port, "beeline_port_cnp_sent_total").value_or(0);
  }
  CHECK(sum == 21);
}

TEST_CASE("export: state and rate of a port, and bytes in words of four", "[tools]") {
  const SysTree tree;
  tree.put("a", "state", "4: ACTIVE");
  tree.put("a", "rate", "2.5 Gb/sec (1X SDR)");
  tree.put("a", "counters/port_xmit_data", "1000");
  tree.put("b", "state", "1: DOWN");
  tree.put("b", "rate", "unknown");
  tree.put("b", "counters/port_xmit_data", "N/A (no PMA)");
  tree.put("efa_0", "hw_counters/tx_bytes", "1000");
  const auto ports = tree.read({"a:1", "b:1", "efa_0:1"});
  REQUIRE(ports.size() == 3);
  CHECK(value(ports[2], "beeline_port_sent_bytes_total") == 1000);
  CHECK(ports[0].device == "a:1");
  CHECK(ports[0].is_up);
  CHECK(ports[0].rate == 2.5e9 / 8);
  CHECK(value(ports[0], "beeline_port_sent_bytes_total") == 4000);
  CHECK(!ports[1].is_up);
  CHECK(!ports[1].rate);
  CHECK(ports[1].values.empty());
}

TEST_CASE("export: only ports that are used are read, and no name leads elsewhere", "[tools]") {
  const SysTree tree;
  tree.put("a", "state", "4: ACTIVE");
  tree.put("b", "state", "4: ACTIVE");
  CHECK(tree.read({}).empty());
  CHECK(tree.read({"b:1"}).size() == 1);
  CHECK(tree.read({"../infiniband/a:1", "a:../1", "a:2", "a", "c:1", "other"}).empty());
}

TEST_CASE("export: each counter of a port has a name of its own", "[tools]") {
  std::set<std::string> names;
  for (const PortCounter& counter : port_counters()) {
    const std::string name = counter.name;
    CAPTURE(name);
    CHECK(names.insert(name).second);
    CHECK(name.starts_with("beeline_port_"));
    CHECK(name.ends_with("_total"));
    CHECK(counter.files[0] != nullptr);
  }
}

}  // namespace
}  // namespace beeline::exporter
