// SPDX-License-Identifier: Apache-2.0
// The PCI part of the tree. Bridges are derived from the paths of the functions: the first step
// below a root is a root port, deeper steps are ports of switches.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "softnic/spec/pci_config.h"
#include "softnic/spec/sysfs_parts.h"

namespace softnic {
namespace {

struct Node {
  std::string dir;  // "devices/pci0000:40/0000:40:01.1"
  std::string address;
  ConfigFacts facts;
  int numa = 0;
  bool is_switch_port = false;
};

using Bridges = std::map<std::string, Node>;  // by dir, so parents come before children

std::uint8_t bus_of(const std::string& address) { return parse_pci_address(address)->bus; }

// Adds a bridge, or updates it: its link is as fast as the fastest link below it, and its secondary
// bus is the bus directly below it.
void add_bridge(Bridges& bridges, const PciFunction& function, std::size_t depth) {
  const std::string& address = function.path.steps[depth];
  const std::string dir = "devices/" + function.path.path_to(depth + 1);
  const auto [entry, is_new] = bridges.try_emplace(dir);
  Node& node = entry->second;
  const std::uint8_t below = bus_of(function.path.steps[depth + 1]);
  const std::uint8_t deepest = bus_of(function.path.function());
  if (is_new) {
    node = {dir, address, {}, function.numa, depth > 0};
    node.facts.bridge = BridgeBuses{bus_of(address), below, below};
  }
  node.facts.class_code = 0x060400;
  node.facts.link_gen = std::max(node.facts.link_gen, function.link_gen);
  node.facts.vendor = node.is_switch_port ? 0x1000 : 0x8086;  // Broadcom PEX, Intel root port
  node.facts.device = node.is_switch_port ? 0xc030 : 0x352a;
  node.facts.bridge->subordinate = std::max({node.facts.bridge->subordinate, below, deepest});
}

void write_node(SysfsWriter& out, const HostSpec& host, const Node& node) {
  const ConfigFacts& facts = node.facts;
  const std::string dir = node.dir + "/";
  out.line(dir + "vendor", fmt::format("0x{:04x}", facts.vendor));
  out.line(dir + "device", fmt::format("0x{:04x}", facts.device));
  out.line(dir + "subsystem_vendor", fmt::format("0x{:04x}", facts.vendor));
  out.line(dir + "subsystem_device", fmt::format("0x{:04x}", facts.device));
  out.line(dir + "class", fmt::format("0x{:06x}", facts.class_code));
  out.line(dir + "revision", "0x00");
  out.line(dir + "numa_node", std::to_string(node.numa));
  out.line(dir + "local_cpus", cpu_map(host, node.numa));
  out.line(dir + "local_cpulist", cpu_list(host, node.numa));
  out.line(dir + "enable", "1");
  for (const char* which : {"current", "max"}) {
    out.line(fmt::format("{}{}_link_speed", dir, which), link_speed_text(facts.link_gen));
    out.line(fmt::format("{}{}_link_width", dir, which), std::to_string(kPciLinkWidth));
  }
  const auto config = pci_config(facts);
  out.file(dir + "config", {reinterpret_cast<const char*>(config.data()), config.size()});
  out.link(dir + "subsystem", "bus/pci");
  out.link("bus/pci/devices/" + node.address, node.dir);
}

// DIR/pci_bus/DDDD:BB describes the bus below a root or a bridge.
void write_bus(SysfsWriter& out, const HostSpec& host, const std::string& dir,
               const std::string& bus, int numa) {
  const std::string bus_dir = fmt::format("{}/pci_bus/{}", dir, bus);
  out.line(bus_dir + "/cpuaffinity", cpu_map(host, numa));
  out.line(bus_dir + "/cpulistaffinity", cpu_list(host, numa));
  out.link("class/pci_bus/" + bus, bus_dir);
}

void write_driver(SysfsWriter& out, const PciFunction& function, const std::string& dir) {
  const std::string driver = fmt::format("bus/pci/drivers/{}", function.driver);
  out.link(dir + "/driver", driver);
  out.link(driver + "/" + function.path.function(), dir);
}

// Writes the file `resource`: first address, last address and flags of each BAR. Real GPUs have
// BARs of about these sizes beside BAR1.
void write_bars(SysfsWriter& out, const std::string& dir, std::uint64_t bar1, std::size_t index) {
  struct Bar {
    std::uint64_t start, size, flags;
  };
  const std::uint64_t above = (std::uint64_t{index} + 32) * std::max(bar1, std::uint64_t{1} << 40);
  const std::array<Bar, 7> bars{Bar{0xa0000000 + (std::uint64_t{index} << 24), 1 << 24, 0x40200},
                                Bar{above, bar1, 0x14220c},
                                {},
                                Bar{above + bar1, 1 << 25, 0x14220c}};
  std::string text;
  for (const Bar& bar : bars)
    text += fmt::format("0x{:016x} 0x{:016x} 0x{:016x}\n", bar.start,
                        bar.size == 0 ? 0 : bar.start + bar.size - 1, bar.flags);
  out.file(dir + "/resource", text);
}

}  // namespace

void write_pci(SysfsWriter& out, const HostSpec& host, const std::vector<PciFunction>& functions) {
  Bridges bridges;
  std::map<std::string, int> roots;
  for (const PciFunction& function : functions) {
    roots.emplace(function.path.root, function.numa);
    for (std::size_t i = 0; i + 1 < function.path.steps.size(); ++i)
      add_bridge(bridges, function, i);
    const std::string dir = "devices/" + function.path.path_to(function.path.steps.size());
    write_node(out, host,
               {dir,
                function.path.function(),
                {function.vendor, function.device, function.class_code, function.link_gen, {}},
                function.numa,
                false});
    write_driver(out, function, dir);
    if (function.bar1 != 0)
      write_bars(out, dir, function.bar1, static_cast<std::size_t>(&function - functions.data()));
  }
  for (const auto& [root, numa] : roots)
    write_bus(out, host, "devices/" + root, root.substr(3), numa);
  for (const auto& [dir, bridge] : bridges) {
    write_node(out, host, bridge);
    const std::string bus =
        fmt::format("{}:{:02x}", bridge.address.substr(0, 4), bridge.facts.bridge->secondary);
    write_bus(out, host, dir, bus, bridge.numa);
  }
}

}  // namespace softnic
