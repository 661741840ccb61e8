// SPDX-License-Identifier: Apache-2.0
#include "plugin/checks/host.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "plugin/device/hca_filter.h"
#include "topology/read/sysfs.h"
#include "topology/read/sysfs_files.h"
#include "topology/read/sysfs_text.h"

namespace beeline::checks {
namespace {

constexpr std::string_view kNoGid = "0000:0000:0000:0000:0000:0000:0000:0000";
constexpr std::string_view kOnlyPrefix = "fe80:0000:0000:0000:0000:0000:0000:0000";
constexpr std::string_view kMappedPrefix = "0000:0000:0000:0000:0000:ffff:";
constexpr std::uint16_t kNvidia = 0x10de;

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<GidRow> read_gids(const Tree& tree, const std::string& port) {
  std::vector<GidRow> gids;
  const std::string types = port + "/gid_attrs/types";
  const std::string netdevs = port + "/gid_attrs/ndevs";
  for (const std::string& name : tree.names(port + "/gids")) {
    const std::string address = tree.line(below(port + "/gids", name));
    if (address.empty() || address == kNoGid || address == kOnlyPrefix) {
      continue;
    }
    const std::string type = tree.line(below(types, name));
    // The kernel refuses to read the type of an entry of another network namespace.
    if (type.empty()) continue;
    gids.push_back({.index = topology::parse_int(name).value_or(-1),
                    .address = address,
                    .type = type,
                    .netdev = tree.line(below(netdevs, name))});
  }
  std::ranges::sort(gids, {}, &GidRow::index);
  return gids;
}

// The interface that the GID table names, otherwise the one of the card with this port's number.
std::string netdev_of(const Tree& tree, const std::string& device, const Port& port) {
  for (const GidRow& gid : port.gids) {
    if (!gid.netdev.empty()) return gid.netdev;
  }
  if (!port.is_ethernet) return {};
  const std::string interfaces = device + "/device/net";
  for (const std::string& name : tree.names(interfaces)) {
    const std::string number = tree.line(below(interfaces, name) + "/dev_port");
    if (number.empty() || number == std::to_string(port.number - 1)) return name;
  }
  return tree.line(device + "/parent");
}

Port read_port(const Tree& tree, const std::string& device, const std::string& name) {
  Port port;
  port.number = topology::parse_int(name).value_or(0);
  port.folder = device + "/ports/" + name;
  port.state = tree.line(port.folder + "/state");
  port.phys_state = tree.line(port.folder + "/phys_state");
  port.speed_mbps = topology::parse_port_rate(tree.line(port.folder + "/rate")).value_or(0);
  port.is_ethernet = tree.line(port.folder + "/link_layer") == "Ethernet";
  port.gids = read_gids(tree, port.folder);
  port.netdev = netdev_of(tree, device, port);
  if (!port.netdev.empty()) {
    const std::string mtu = tree.line("/sys/class/net/" + port.netdev + "/mtu");
    port.mtu = topology::parse_int(mtu).value_or(0);
  }
  return port;
}

std::string uverbs_of(const Tree& tree, const std::string& device) {
  constexpr const char* kFolder = "/sys/class/infiniband_verbs/";
  for (const std::string& name : tree.names(kFolder)) {
    if (tree.line(kFolder + name + "/ibdev") == device) return name;
  }
  return {};
}

RdmaDevice read_device(const Tree& tree, const std::string& name) {
  RdmaDevice device;
  device.name = name;
  device.folder = "/sys/class/infiniband/" + name;
  if (const auto pci = topology::function_of(tree.place(device.folder))) {
    device.pci = to_string(*pci);
    device.driver = last_part(tree.link("/sys/bus/pci/devices/" + device.pci + "/driver"));
  }
  device.model = tree.line(device.folder + "/hca_type");
  device.firmware = tree.line(device.folder + "/fw_ver");
  device.board = tree.line(device.folder + "/board_id");
  device.is_iwarp = tree.line(device.folder + "/node_type").starts_with("4");
  device.uverbs = uverbs_of(tree, name);
  for (const std::string& port : tree.names(device.folder + "/ports")) {
    device.ports.push_back(read_port(tree, device.folder, port));
  }
  return device;
}

bool can_open(const Tree& tree, const std::optional<VerbsView>& verbs, const RdmaDevice& device) {
  if (verbs && verbs->error.empty()) {
    const auto seen = verbs->devices.find(device.name);
    return seen != verbs->devices.end() && seen->second.error.empty();
  }
  return !device.uverbs.empty() && tree.access("/dev/infiniband/" + device.uverbs) == Access::kRead;
}

// NCCL reads NAME=VALUE lines from files, and the environment has priority.
Environ with_files(const Tree& tree, const Environ& environ,
                   std::map<std::string, std::string>& file_of) {
  std::vector<std::string> lines;
  for (const Environ::Variable& variable : environ.variables()) {
    lines.push_back(variable.name + "=" + variable.value);
    file_of.emplace(variable.name, "");
  }
  for (const std::string& file : nccl_files(environ)) {
    for (std::string& line : tree.lines(file)) {
      if (line.starts_with('#')) continue;
      file_of.emplace(line.substr(0, line.find('=')), file);
      lines.push_back(std::move(line));
    }
  }
  return Environ({lines.begin(), lines.end()});
}

void mark_wanted(Host& host) {
  const bool can_open_any = host.can_open_any();
  const auto text = host.environ.get("BEELINE_HCA")
                        .value_or(host.environ.get("NCCL_IB_HCA").value_or(std::string_view()));
  const HcaFilter filter = parse_hca_filter(text);
  for (RdmaDevice& device : host.devices) {
    for (Port& port : device.ports) {
      port.is_wanted =
          judge(filter, device.name, port.number).admitted && (device.can_open || !can_open_any);
    }
  }
}

std::vector<Gpu> gpus_of(const topology::Graph& graph) {
  std::vector<Gpu> gpus;
  for (const topology::NodeIndex index : graph.gpus()) {
    const topology::Node& node = graph[index];
    gpus.push_back({.pci = node.pci ? to_string(*node.pci) : std::string(),
                    .name = label(node),
                    .is_nvidia = node.vendor == kNvidia});
  }
  return gpus;
}

}  // namespace

bool GidRow::is_ipv4_mapped() const { return address.starts_with(kMappedPrefix); }

bool GidRow::is_link_local() const {
  constexpr std::string_view kLocalIpv4 = "a9fe";
  const std::string_view text(address);
  if (is_ipv4_mapped()) return text.substr(kMappedPrefix.size()).starts_with(kLocalIpv4);
  return text.starts_with("fe8") || text.starts_with("fe9") || text.starts_with("fea") ||
         text.starts_with("feb");
}

std::string address_text(const GidRow& gid) {
  std::array<unsigned, 2> halves{};
  if (!gid.is_ipv4_mapped() || std::sscanf(gid.address.c_str() + kMappedPrefix.size(), "%x:%x",
                                           halves.data(), halves.data() + 1) != 2) {
    return gid.address;
  }
  std::string text;
  for (const unsigned half : halves) {
    text += (text.empty() ? "" : ".") + std::to_string(half >> 8 & 0xff) + "." +
            std::to_string(half & 0xff);
  }
  return text;
}

std::vector<std::string> nccl_files(const Environ& environ) {
  std::vector<std::string> files;
  if (const auto file = environ.get("NCCL_CONF_FILE")) {
    files.emplace_back(*file);
  } else if (const auto home = environ.get("HOME")) {
    files.push_back(std::string(*home) + "/.nccl.conf");
  }
  files.emplace_back("/etc/nccl.conf");
  return files;
}

bool Host::can_open_any() const { return std::ranges::any_of(devices, &RdmaDevice::can_open); }

bool Host::has_active_port() const {
  return std::ranges::any_of(devices, [](const RdmaDevice& device) {
    return std::ranges::any_of(device.ports, &Port::is_active);
  });
}

Host read_host(const Tree& tree, const Environ& environ, std::optional<VerbsView> verbs) {
  std::map<std::string, std::string> file_of;
  Host host = {.tree = tree,
               .environ = with_files(tree, environ, file_of),
               .verbs = std::move(verbs),
               .file_of = std::move(file_of)};
  for (const std::string& name : tree.names("/sys/class/infiniband")) {
    host.devices.push_back(read_device(tree, name));
    host.devices.back().can_open = can_open(tree, host.verbs, host.devices.back());
  }
  mark_wanted(host);
  auto graph = topology::Graph::make(topology::read_sysfs(tree.sysfs()));
  if (graph) {
    host.gpus = gpus_of(*graph);
    host.graph = *std::move(graph);
  }
  return host;
}

std::string label(const RdmaDevice& device, const Port& port) {
  return device.name + " port " + std::to_string(port.number);
}

}  // namespace beeline::checks
