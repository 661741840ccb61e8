// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "plugin/checks/all_checks.h"
#include "plugin/checks/rails.h"
#include "plugin/checks/words.h"
#include "topology/findings.h"

namespace beeline::checks {
namespace {

using topology::Graph;
using topology::kNoNode;
using topology::Node;
using topology::NodeIndex;
using topology::NodeKind;

// NCCL reads it if NCCL_TOPO_FILE is not set.
constexpr const char* kDescription = "/var/run/nvidia-topologyd/virtualTopology.xml";
constexpr std::string_view kFunctions = "/sys/bus/pci/devices/";

std::string folder_of(const std::string& pci) { return std::string(kFunctions) + pci; }

std::string address(const Node& node) { return node.pci ? to_string(*node.pci) : std::string(); }

std::string_view id_of(topology::FindingKind kind) {
  using enum topology::FindingKind;
  switch (kind) {
    case kSlowLink: return "slow-link";
    case kFarNic: return "far-nic";
    case kSlowNearNic: return "slow-near-nic";
    case kHiddenTree: return "hidden-tree";
    case kPortDown:             // check_ports() sees more
    case kOddSpeed: return {};  // in files only
  }
  return {};
}

bool is_virtual_machine(const Tree& tree) {
  for (const std::string& line : tree.lines("/proc/cpuinfo")) {
    if (line.starts_with("flags")) return line.find(" hypervisor") != std::string::npos;
  }
  return false;
}

bool is_x86(const Tree& tree) {
  return tree.read("/proc/cpuinfo").text.find("vendor_id") != std::string::npos;
}

// PCI Express's extended capabilities begin at 0x100. A user without privileges reads 64 bytes.
constexpr std::size_t kExtended = 0x100;
constexpr unsigned kAccessControl = 0x0d;
constexpr unsigned kRedirections = 0x04 | 0x08 | 0x10;  // requests, completions, all to the root

unsigned word_at(const std::string& config, std::size_t at, std::size_t bytes) {
  unsigned value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<unsigned>(static_cast<unsigned char>(config[at + i])) << (8 * i);
  }
  return value;
}

// The control register of the function's access control; 0 if it has none.
unsigned access_control(const std::string& config) {
  std::set<std::size_t> seen;  // a broken list may have a cycle
  for (std::size_t at = kExtended; at >= kExtended && at + 8 <= config.size();) {
    if (!seen.insert(at).second) break;
    const unsigned header = word_at(config, at, 4);
    if ((header & 0xffff) == kAccessControl) return word_at(config, at + 6, 2);
    at = header >> 20;
  }
  return 0;
}

std::vector<NodeIndex> bridges_above(const Graph& graph, NodeIndex device) {
  std::vector<NodeIndex> bridges;
  for (NodeIndex at = graph[device].parent; at != kNoNode; at = graph[at].parent) {
    if (graph[at].kind != NodeKind::kBridge) break;
    bridges.push_back(at);
  }
  return bridges;
}

// The bridges between a GPU and a NIC that are below a common switch: there a transfer from one to
// the other need not pass the processor.
std::set<NodeIndex> bridges_between(const Graph& graph) {
  std::set<NodeIndex> between;
  for (const NodeIndex gpu : graph.gpus()) {
    const std::vector<NodeIndex> above_gpu = bridges_above(graph, gpu);
    for (const NodeIndex nic : graph.nics()) {
      const std::vector<NodeIndex> above_nic = bridges_above(graph, nic);
      const auto common = std::ranges::find_first_of(above_gpu, above_nic);
      if (common == above_gpu.end()) continue;
      between.insert(above_gpu.begin(), common);
      between.insert(above_nic.begin(), std::ranges::find(above_nic, *common));
    }
  }
  return between;
}

// Those that a job would use. Ports that are not active are said elsewhere.
std::vector<NodeIndex> wanted_nics(const Host& host, const Graph& graph) {
  std::vector<NodeIndex> nics;
  for (const RdmaDevice& device : host.devices) {
    const bool is_used = std::ranges::any_of(
        device.ports, [](const Port& port) { return port.is_wanted && port.is_active(); });
    const NodeIndex node = find_os_device(graph, topology::OsKind::kRdma, device.name);
    if (is_used && node != kNoNode) nics.push_back(node);
  }
  return nics;
}

}  // namespace

void check_topology(const Host& host, Findings& found) {
  if (!host.graph) {
    return found.add_unknown("slow-link", {.fact = "the tree of PCI devices is not understood",
                                           .source = "/sys/bus/pci/devices"});
  }
  const Graph& graph = *host.graph;
  const LostNics lost = lost_nics(host).value_or(LostNics{});
  if (!lost.gpus.empty()) {
    found.add("gpu-without-nic",
              {.subject = listed(lost.gpus),
               .fact = listed(lost.gpus) + (lost.gpus.size() == 1 ? " has" : " have") +
                       " no NIC nearby, but " + std::to_string(lost.others) +
                       " other GPUs have one (" + lost.model + ")",
               .source = std::string(kFunctions)});
  }
  for (const topology::Finding& finding :
       topology::findings(graph, {.nics = wanted_nics(host, graph)})) {
    const std::string_view id = id_of(finding.kind);
    if (id.empty()) continue;
    // The provider's description takes the place of the hidden tree.
    if (finding.kind == topology::FindingKind::kHiddenTree &&
        (host.environ.get("NCCL_TOPO_FILE") || host.tree.has(kDescription))) {
      continue;
    }
    const bool is_device = finding.device != kNoNode;
    const std::string name = is_device ? label(graph[finding.device]) : std::string();
    // Said above, with the cause.
    if (finding.kind == topology::FindingKind::kFarNic && lost.gpus.contains(name)) continue;
    const std::string pci = is_device ? address(graph[finding.device]) : std::string();
    found.add(id,
              {.subject = name,
               .fact = is_device ? name + ": " + finding.cause : finding.cause,
               .source = pci.empty() ? std::string(kFunctions) : folder_of(pci),
               .fix = finding.fix},
              {{"pci", pci}});
  }
}

void check_access_control(const Host& host, Findings& found) {
  if (!host.graph || !is_x86(host.tree) || is_virtual_machine(host.tree)) return;
  std::set<std::string> unreadable;
  std::set<std::string> redirecting;
  for (const NodeIndex bridge : bridges_between(*host.graph)) {
    const std::string pci = address((*host.graph)[bridge]);
    const Text config = host.tree.read(folder_of(pci) + "/config");
    if (!config.is_read() || config.text.size() <= kExtended) {
      unreadable.insert(pci);
    } else if ((access_control(config.text) & kRedirections) != 0) {
      redirecting.insert(pci);
    }
  }
  for (const std::string& pci : redirecting) {
    found.add("acs-redirects",
              {.subject = pci,
               .fact = "the bridge " + pci +
                       ", between a GPU and a NIC, redirects transfers to "
                       "the processor",
               .source = folder_of(pci) + "/config"},
              {{"pci", pci}});
  }
  if (!unreadable.empty()) {
    found.add_unknown(
        "acs-redirects",
        {.subject = listed(unreadable),
         .fact = "only root may read the configuration of the bridges " + listed(unreadable),
         .source = folder_of(*unreadable.begin()) + "/config"});
  }
}

void check_iommu(const Host& host, Findings& found) {
  if (!is_x86(host.tree) || is_virtual_machine(host.tree) || host.gpus.empty()) return;
  std::map<std::string, std::set<std::string>> by_type;
  const auto look = [&](const std::string& name, const std::string& pci) {
    if (pci.empty()) return;
    const std::string type = host.tree.line(folder_of(pci) + "/iommu_group/type");
    if (type.starts_with("DMA")) by_type[type].insert(name);
  };
  for (const RdmaDevice& device : host.devices) look(device.name, device.pci);
  for (const Gpu& gpu : host.gpus) look(gpu.name, gpu.pci);
  for (const auto& [type, names] : by_type) {
    found.add("iommu-translates",
              {.subject = listed(names),
               .fact = "the IOMMU translates for " + listed(names) + " (" + type + ")",
               .source = std::string(kFunctions) + "*/iommu_group/type"});
  }
}

void check_functions(const Host& host, Findings& found) {
  std::map<std::string, std::string> device_at;
  for (const RdmaDevice& device : host.devices) device_at[device.pci] = device.name;
  const bool has_numa = host.tree.has("/sys/devices/system/node/node1");
  std::set<std::string> physical;
  for (const RdmaDevice& device : host.devices) {
    if (device.pci.empty() || std::ranges::none_of(device.ports, &Port::is_wanted)) continue;
    const std::string target = host.tree.link(folder_of(device.pci) + "/physfn");
    const auto owner = device_at.find(target.substr(target.rfind('/') + 1));
    if (!target.empty() && owner != device_at.end()) physical.insert(owner->second);
    if (has_numa && host.tree.line(folder_of(device.pci) + "/numa_node") == "-1") {
      found.add("numa-unknown", {.subject = device.name,
                                 .fact = device.name + " has no NUMA node",
                                 .source = folder_of(device.pci) + "/numa_node"});
    }
  }
  const bool is_chosen = host.environ.get("BEELINE_HCA") || host.environ.get("NCCL_IB_HCA");
  if (physical.empty() || is_chosen) return;
  std::string names;
  for (const std::string& name : physical) append_item(names, name, ",");
  found.add("virtual-and-physical",
            {.subject = listed(physical),
             .fact = listed(physical) + " and virtual functions of the same port are both visible",
             .source = std::string(kFunctions) + "*/physfn"},
            {{"devices", names}});
}

}  // namespace beeline::checks
