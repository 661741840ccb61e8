// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/topology/machine_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <vector>

namespace beeline::topology {
namespace {

[[noreturn]] void stop(const std::string& line, const std::string& why) {
  std::fprintf(stderr, "machine text: %s: \"%s\"\n", why.c_str(), line.c_str());
  std::abort();
}

PciAddress address_of(const std::string& text, const std::string& line) {
  const auto address = parse_pci_address(text);
  if (!address) stop(line, "no address");
  return *address;
}

PcieLink link_of(const std::string& text, const std::string& line) {
  double giga = 0;
  unsigned lanes = 0;
  if (std::sscanf(text.c_str(), "%lfx%u", &giga, &lanes) != 2) stop(line, "no link");
  return {.mega_transfers = static_cast<std::uint32_t>(giga * 1000), .lanes = lanes};
}

GpuLink nvlink_of(const std::string& text, const std::string& line) {
  const auto times = text.find('*');
  if (times == std::string::npos) stop(line, "no NVLink");
  GpuLink link{.count = static_cast<std::uint32_t>(std::stoul(text))};
  const std::string target = text.substr(times + 1);
  link.target = target == "switch" ? "fffffff:ffff:ff" : to_string(address_of(target, line));
  link.target_class = target == "switch" ? 0x068000 : 0x030200;
  return link;
}

void set_cpu(Node& node, const std::string& text, const std::string& line) {
  std::array<char, 32> vendor{};
  if (std::sscanf(text.c_str(), "%31[^/]/%d/%d", vendor.data(), &node.cpu.family,
                  &node.cpu.model) != 3) {
    stop(line, "no processor");
  }
  node.cpu.arch = "x86_64";
  node.cpu.vendor = vendor.data();
}

void set_ids(Node& node, const std::string& text, const std::string& line) {
  std::array<std::uint16_t*, 4> ids{&node.vendor, &node.device, &node.subsystem_vendor,
                                    &node.subsystem_device};
  std::istringstream words(text);
  for (std::uint16_t* id : ids) {
    std::string word;
    if (!std::getline(words, word, ':')) stop(line, "four numbers are wanted");
    *id = static_cast<std::uint16_t>(std::stoul(word, nullptr, 16));
  }
}

struct Word {
  NodeKind kind;
  BridgePort port = BridgePort::kUnknown;
  DeviceRole role = DeviceRole::kOther;
};

const std::map<std::string, Word> kWords = {
    {"package", {NodeKind::kPackage}},
    {"numa", {NodeKind::kNumaNode}},
    {"host", {NodeKind::kHostBridge}},
    {"root", {NodeKind::kBridge, BridgePort::kRoot}},
    {"up", {NodeKind::kBridge, BridgePort::kUpstream}},
    {"down", {NodeKind::kBridge, BridgePort::kDownstream}},
    {"bridge", {NodeKind::kBridge}},
    {"switch", {NodeKind::kBridge, BridgePort::kSwitch}},
    {"gpu", {NodeKind::kDevice, BridgePort::kUnknown, DeviceRole::kGpu}},
    {"nic", {NodeKind::kDevice, BridgePort::kUnknown, DeviceRole::kRdmaNic}},
    {"vf", {NodeKind::kDevice, BridgePort::kUnknown, DeviceRole::kRdmaNic}},
    {"soft", {NodeKind::kDevice, BridgePort::kUnknown, DeviceRole::kRdmaNic}},
    {"other", {NodeKind::kDevice}},
};

class Reader {
 public:
  Reader() { parts_.nodes.push_back({.kind = NodeKind::kMachine}); }

  GraphParts read(std::string_view text) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
      const auto indent = line.find_first_not_of(' ');
      if (indent == std::string::npos || line[indent] == '#') continue;
      read_line(line, indent);
    }
    for (const auto& [node, physical] : virtual_functions_) {
      const auto is_physical = [wanted = physical](const Node& other) {
        return other.kind == NodeKind::kDevice && other.pci == wanted;
      };
      const auto found = std::ranges::find_if(parts_.nodes, is_physical);
      parts_.nodes[node].physical_function = static_cast<NodeIndex>(found - parts_.nodes.begin());
    }
    return std::move(parts_);
  }

 private:
  void read_line(const std::string& line, std::size_t indent) {
    while (!open_.empty() && open_.back().first >= indent) open_.pop_back();
    std::istringstream words(line);
    std::string word;
    words >> word;
    const auto known = kWords.find(word);
    if (known == kWords.end()) stop(line, "unknown word");
    Node node{.kind = known->second.kind, .parent = open_.empty() ? 0 : open_.back().second};
    node.port = known->second.port;
    node.role = known->second.role;
    bool has_place = word == "soft";
    for (std::string argument; words >> argument;) {
      const auto equals = argument.find('=');
      if (equals != std::string::npos) {
        set(node, argument.substr(0, equals), argument.substr(equals + 1), line);
      } else if (has_place) {
        node.os_devices.push_back(
            {node.role == DeviceRole::kRdmaNic ? OsKind::kRdma : OsKind::kInterface, argument});
      } else {
        set_place(node, argument, line);
        has_place = true;
      }
    }
    open_.emplace_back(indent, parts_.nodes.size());
    parts_.nodes.push_back(std::move(node));
  }

  static void set_place(Node& node, const std::string& text, const std::string& line) {
    if (node.kind == NodeKind::kPackage || node.kind == NodeKind::kNumaNode) {
      node.number = std::stoi(text);
    } else {
      node.pci = address_of(node.kind == NodeKind::kHostBridge ? text + ":00.0" : text, line);
    }
  }

  void set(Node& node, const std::string& key, const std::string& value, const std::string& line) {
    if (key == "numa") {
      node.numa = std::stoi(value);
    } else if (key == "cpus") {
      node.cpus = value;
    } else if (key == "name") {
      node.name = value;
    } else if (key == "now") {
      node.link_now = link_of(value, line);
    } else if (key == "max") {
      node.link_max = link_of(value, line);
    } else if (key == "speed") {
      node.nic_ports.push_back({.speed_mbps = static_cast<std::uint32_t>(std::stoul(value))});
    } else if (key == "state") {
      node.nic_ports.back().state = value == "down" ? PortState::kDown : PortState::kActive;
    } else if (key == "dev") {
      node.gpu.number = std::stoi(value);
    } else if (key == "sm") {
      node.gpu.sm = std::stoi(value);
    } else if (key == "nvlink") {
      node.gpu.links.push_back(nvlink_of(value, line));
    } else if (key == "c2c") {
      node.gpu.links.push_back(
          {.kind = GpuLinkKind::kC2c,
           .mbytes_per_second = static_cast<std::uint32_t>(std::stoul(value))});
    } else if (key == "cpu") {
      set_cpu(node, value, line);
    } else if (key == "ids") {
      set_ids(node, value, line);
    } else if (key == "bond") {
      node.bond = value;
    } else if (key == "pf") {
      virtual_functions_.emplace_back(parts_.nodes.size(), address_of(value, line));
    } else {
      stop(line, "unknown key");
    }
  }

  GraphParts parts_;
  std::vector<std::pair<std::size_t, NodeIndex>> open_;  // indent, node
  std::vector<std::pair<NodeIndex, PciAddress>> virtual_functions_;
};

}  // namespace

GraphParts read_machine(std::string_view text) { return Reader().read(text); }

Graph make_machine(std::string_view text) {
  Outcome<Graph> graph = Graph::make(read_machine(text));
  if (!graph) stop("", graph.error().text);
  return *std::move(graph);
}

GraphParts shuffled(const GraphParts& parts, unsigned seed) {
  std::vector<NodeIndex> to(parts.nodes.size());
  std::iota(to.begin(), to.end(), NodeIndex{0});
  std::ranges::shuffle(to, std::mt19937(seed));
  GraphParts result = parts;
  for (NodeIndex i = 0; i < to.size(); ++i) {
    Node node = parts.nodes[i];
    if (node.parent != kNoNode) node.parent = to[node.parent];
    if (node.physical_function != kNoNode) node.physical_function = to[node.physical_function];
    std::ranges::reverse(node.os_devices);
    std::ranges::reverse(node.nic_ports);
    result.nodes[to[i]] = std::move(node);
  }
  return result;
}

}  // namespace beeline::topology
