// SPDX-License-Identifier: Apache-2.0
//
// Turns the elements of NCCL's file into nodes.
#include "topology/read/nccl_xml.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "topology/read/nccl_gpu.h"
#include "topology/read/remarks.h"
#include "topology/read/sysfs_text.h"
#include "topology/role.h"

namespace beeline::topology {
namespace {

using Done = Outcome<void>;

constexpr std::size_t kMaxPorts = 256;  // of one device; real NICs have two
constexpr std::uint8_t kLastFunction = 7;
constexpr std::size_t kMaxQuoted = 60;  // characters of a text that a message quotes
constexpr std::uint32_t kNetworkClass = 0x02;
constexpr std::uint32_t kDisplayClass = 0x03;
constexpr std::uint32_t kAcceleratorClass = 0x12;
constexpr std::uint32_t kHostBridgeClass = 0x0600;
constexpr std::uint32_t kPciBridgeClass = 0x0604;

const XmlElement* child_of(const XmlElement& element, std::string_view name) noexcept {
  const auto found = std::ranges::find(element.children, name, &XmlElement::name);
  return found == element.children.end() ? nullptr : &*found;
}

bool has_child(const XmlElement& element, std::string_view name) noexcept {
  return child_of(element, name) != nullptr;
}

std::string quoted(const std::string& text) {
  return text.size() <= kMaxQuoted ? "\"" + text + "\""
                                   : "\"" + text.substr(0, kMaxQuoted) + "...\"";
}

std::optional<int> parse_numa(std::string_view text) noexcept {
  const std::optional<int> number = parse_int(text);
  return number && *number > kMaxNumber ? std::nullopt : number;
}

std::string text_of(const XmlElement& element, std::string_view attribute) {
  const std::string* const text = element.find(attribute);
  return text == nullptr ? std::string() : *text;
}

// Calls `take` for each <net>. NCCL writes <net> below <nic>; people may omit the <nic>.
template <class Take>
void each_net(const XmlElement& element, const Take& take) {
  for (const XmlElement& child : element.children) {
    if (child.name == "net") take(child);
    if (child.name == "nic") each_net(child, take);
  }
}

void collect_net_names(const XmlElement& element, std::set<std::string>& names) {
  if (element.name == "net") names.insert(text_of(element, "name"));
  for (const XmlElement& child : element.children) collect_net_names(child, names);
}

bool is_known(std::string_view name) noexcept {
  constexpr std::string_view kKnown[] = {"cpu", "pci",  "gpu",    "nic",     "net",
                                         "c2c", "link", "nvlink", "pcilink", "xgmi"};
  return std::ranges::find(kKnown, name) != std::end(kKnown);
}

class NcclReader {
 public:
  explicit NcclReader(const std::string& file) : file_(file) {
    parts_.source = file + " (NCCL)";
    parts_.nodes.push_back({.kind = NodeKind::kMachine});
  }

  Outcome<GraphParts> read(const XmlElement& system) {
    if (system.name != "system") {
      return wrong(system, "the root is <" + system.name + ">, not <system>",
                   "set NCCL_TOPO_DUMP_FILE to let NCCL write a file");
    }
    const std::string version = text_of(system, "version");
    if (version == "1" || version == "2") {
      parts_.nccl_version = version == "1" ? 1 : 2;
    } else {
      note(system, "version " + quoted(version) + " is neither NCCL's 1 nor RCCL's 2");
    }
    parts_.nodes[0].name = text_of(system, "name");
    collect_net_names(system, net_names_);
    for (const XmlElement& child : system.children) {
      if (child.name == "cpu") {
        BL_TRY(read_cpu(child));
      } else {
        BL_TRY(read_below(child, 0));
      }
    }
    place_merged_functions();
    add_summary_remarks();
    parts_.remarks = remarks_.take();
    return std::move(parts_);
  }

 private:
  Failure<Problem> wrong(const XmlElement& at, const std::string& cause,
                         const std::string& fix) const {
    return fail(Problem(file_ + ":" + std::to_string(at.line) + ": " + cause + "; " + fix));
  }

  void note(const XmlElement& at, const std::string& what) {
    remarks_.add("line " + std::to_string(at.line) + ": " + what);
  }

  // An attribute as a number. An empty attribute counts as a missing one.
  template <class Parse>
  auto number(const XmlElement& element, std::string_view attribute, const Parse& parse)
      -> decltype(parse(std::string_view())) {
    const std::string* const text = element.find(attribute);
    if (text == nullptr || text->empty()) return {};
    auto value = parse(*text);
    if (!value) note(element, std::string(attribute) + "=" + quoted(*text) + " cannot be read");
    return value;
  }

  NodeIndex add(Node node) {
    parts_.nodes.push_back(std::move(node));
    return parts_.nodes.size() - 1;
  }

  // NCCL's dump of a multi-node NVLink rack contains the processors of all hosts.
  bool is_other_host(const XmlElement& cpu) {
    const std::string host = text_of(cpu, "host_hash");
    if (host.empty()) return false;
    if (host_.empty()) host_ = host;
    if (host == host_) return false;
    remarks_.add("the file describes several hosts; only the first one is read");
    return true;
  }

  Done read_cpu(const XmlElement& cpu) {
    if (is_other_host(cpu)) return {};
    NodeIndex parent = 0;
    const std::optional<int> numa = number(cpu, "numaid", parse_numa);
    if (numa.value_or(-1) >= 0) {
      const auto [known, is_new] = numas_.try_emplace(*numa, parts_.nodes.size());
      if (is_new) add({.kind = NodeKind::kNumaNode, .parent = 0, .number = *numa});
      parent = known->second;
      if (!is_new) note(cpu, "NUMA node " + std::to_string(*numa) + " appears twice");
      Node& node = parts_.nodes[parent];
      if (node.cpus.empty()) node.cpus = cpus_of(cpu);
      if (is_new) node.cpu = facts_of(cpu);
    } else {
      note(cpu,
           "a <cpu> without a NUMA node: to NCCL, all devices below it are as near as PHB; here "
           "they count as SYS, because nothing says on which processors they are");
    }
    for (const XmlElement& child : cpu.children) BL_TRY(read_below(child, parent));
    return {};
  }

  CpuFacts facts_of(const XmlElement& cpu) {
    return {.arch = text_of(cpu, "arch"),
            .vendor = text_of(cpu, "vendor"),
            .family = number(cpu, "familyid", parse_int).value_or(-1),
            .model = number(cpu, "modelid", parse_int).value_or(-1)};
  }

  std::string cpus_of(const XmlElement& cpu) {
    const auto parse = [](std::string_view text) -> std::optional<std::string> {
      if (text.find('-') != std::string_view::npos && is_cpu_list(text)) return std::string(text);
      return list_of_mask(text);
    };
    return number(cpu, "affinity", parse).value_or("");
  }

  Done read_below(const XmlElement& element, NodeIndex parent) {
    if (element.name == "pci") return read_pci(element, parent);
    if (element.name == "nic" || element.name == "net") return read_without_pci(element, parent);
    if (element.name == "gpu")
      note(element, "a <gpu> outside of a <pci> has no PCI address and is ignored");
    if (!is_known(element.name)) remarks_.add("elements <" + element.name + "> are ignored");
    return {};
  }

  Done read_pci(const XmlElement& element, NodeIndex parent) {
    Node node{.parent = parent};
    BL_TRY(read_address(element, node));
    node.pci_class = number(element, "class", parse_pci_class).value_or(0);
    node.vendor = id_of(element, "vendor");
    node.device = id_of(element, "device");
    node.subsystem_vendor = id_of(element, "subsystem_vendor");
    node.subsystem_device = id_of(element, "subsystem_device");
    node.link_now.mega_transfers = link_rate_of(element);
    node.link_now.lanes = link_width_of(element);
    if (is_bridge(element, node)) return read_bridge(element, std::move(node));

    if (node.pci) BL_TRY(read_nets(element, node));
    if (const XmlElement* const gpu = child_of(element, "gpu")) node.gpu = read_gpu(*gpu);
    node.role = role_of(element, node);
    // A device has no children in the graph, so its children become its siblings.
    for (const XmlElement& child : element.children) {
      if (child.name != "pci") continue;
      note(child, "a <pci> below a device is treated as a sibling of that device");
      BL_TRY(read_pci(child, parent));
    }
    if (!node.pci) return read_unaddressed(element, node, parent);
    if (node.role == DeviceRole::kRdmaNic && node.os_devices.empty()) ++nameless_nics_;
    if (node.role == DeviceRole::kOther && node.pci_class == 0) classless_.push_back(label(node));
    add(std::move(node));
    return {};
  }

  // Several <gpu> elements in one function are parts of one GPU, as MPS divides it.
  GpuFacts read_gpu(const XmlElement& gpu) {
    return read_gpu_facts(
        gpu, [this](const XmlElement& at, const std::string& what) { note(at, what); });
  }

  // A device without an address can be told from others by a name only, and only NICs have names.
  Done read_unaddressed(const XmlElement& element, const Node& node, NodeIndex parent) {
    const std::size_t before = parts_.nodes.size();
    if (node.role != DeviceRole::kGpu) BL_TRY(read_without_pci(element, parent));
    if (parts_.nodes.size() == before) note(element, "a device without busid and name is ignored");
    return {};
  }

  // For NCCL, a device that is neither GPU nor NIC is a switch.
  static bool is_bridge(const XmlElement& element, const Node& node) noexcept {
    const std::uint32_t base_class = node.pci_class >> 16;
    if (node.pci_class >> 8 == kPciBridgeClass) return true;
    if (base_class == kNetworkClass || base_class == kDisplayClass ||
        base_class == kAcceleratorClass || has_child(element, "gpu")) {
      return false;
    }
    return has_child(element, "pci");
  }

  Done read_bridge(const XmlElement& element, Node node) {
    if (bridges_above(node.parent) >= kMaxBridgesInARow) {
      return wrong(element,
                   "more than " + std::to_string(kMaxBridgesInARow) + " bridges one below another",
                   "is it the right file?");
    }
    const bool below_bridge = parts_.nodes[node.parent].kind >= NodeKind::kHostBridge;
    if (node.pci_class >> 8 == kHostBridgeClass && !below_bridge) {
      node.kind = NodeKind::kHostBridge;
      node.link_now = {};
    } else {
      node.kind = NodeKind::kBridge;
      node.port = BridgePort::kSwitch;
    }
    const NodeIndex bridge = add(std::move(node));
    for (const XmlElement& child : element.children) BL_TRY(read_below(child, bridge));
    return {};
  }

  int bridges_above(NodeIndex at) const {
    int bridges = 0;
    for (; parts_.nodes[at].kind == NodeKind::kBridge; at = parts_.nodes[at].parent) ++bridges;
    return bridges;
  }

  Done read_address(const XmlElement& element, Node& node) {
    const std::string text = text_of(element, "busid");
    if (text.empty()) {
      note(element, "a <pci> without busid");
      return {};
    }
    node.pci = parse_pci_address(text);
    if (!node.pci) {
      return wrong(element, "busid \"" + text + "\" is not a PCI address",
                   "addresses look like 0000:3b:00.0");
    }
    const auto [first, is_new] = addresses_.try_emplace(*node.pci, element.line);
    if (is_new) return {};
    return wrong(
        element,
        "busid \"" + text + "\" appears twice, first in line " + std::to_string(first->second),
        "give each device its own address");
  }

  std::uint16_t id_of(const XmlElement& element, std::string_view attribute) {
    const std::uint32_t id = number(element, attribute, parse_hex).value_or(0);
    return id <= 0xffff ? static_cast<std::uint16_t>(id) : std::uint16_t{0};
  }

  // The kernel writes "Unknown" and 0 lanes for a device without a link.
  static std::uint32_t link_rate_of(const XmlElement& element) {
    return parse_link_rate(text_of(element, "link_speed")).value_or(0);
  }
  static std::uint32_t link_width_of(const XmlElement& element) {
    return parse_link_width(text_of(element, "link_width")).value_or(0);
  }

  // NCCL merges the functions of a card, so there may be several names at one address. Each name is
  // a separate device.
  Done read_nets(const XmlElement& element, Node& node) {
    const Node blank = node;
    std::vector<Node> functions = {std::move(node)};
    Done done;
    each_net(element, [&](const XmlElement& net) {
      if (!done) return;
      Node& function = function_of(functions, blank, text_of(net, "name"));
      done = functions.size() > kMaxPorts ? too_many_ports(net) : read_net(net, function);
    });
    node = std::move(functions.front());
    for (std::size_t i = 1; i < functions.size(); ++i) {
      if (functions[i].os_devices.empty()) continue;
      functions[i].role = role_of(element, functions[i]);
      merged_functions_.push_back(std::move(functions[i]));
    }
    return done;
  }

  // The function with that name, otherwise the first one without a name.
  static Node& function_of(std::vector<Node>& functions, const Node& blank,
                           const std::string& name) {
    for (Node& function : functions) {
      const std::string& known = os_name(function, OsKind::kRdma);
      if (known.empty() || known == name || name.empty()) return function;
    }
    return functions.emplace_back(blank);
  }

  // A function that NCCL merged into another gets the next free address.
  void place_merged_functions() {
    for (Node& function : merged_functions_) {
      PciAddress address = *function.pci;
      while (addresses_.contains(address) && address.function < kLastFunction) ++address.function;
      function.pci.reset();
      if (addresses_.try_emplace(address, 0).second) function.pci = address;
      add(std::move(function));
    }
  }

  // NCCL's socket transport writes port 0; RDMA ports count from 1.
  Done read_net(const XmlElement& net, Node& node) {
    const std::string name = text_of(net, "name");
    if (is_made_of_others(name)) {
      remarks_.add("network device " + name + " is ignored, because its members are listed");
      return {};
    }
    if (node.os_devices.size() >= kMaxPorts || node.nic_ports.size() >= kMaxPorts) {
      return too_many_ports(net);
    }
    if (node.place_in_file < 0) node.place_in_file = nets_++;
    const int port = number(net, "port", parse_int).value_or(1);
    const OsDevice device{port == 0 ? OsKind::kInterface : OsKind::kRdma, name};
    const bool is_here = std::ranges::find(node.os_devices, device) != node.os_devices.end();
    if (!name.empty() && !is_here) {
      if (device.kind == OsKind::kRdma && !rdma_names_.insert(name).second) {
        return wrong(net, "network device " + name + " appears twice", "remove one of the two");
      }
      node.os_devices.push_back(device);
    }
    if (port <= 0 || (net.find("port") == nullptr && net.find("speed") == nullptr)) return {};
    const int speed = number(net, "speed", parse_int).value_or(0);
    node.nic_ports.push_back({.number = static_cast<std::uint32_t>(port),
                              .speed_mbps = static_cast<std::uint32_t>(std::max(speed, 0))});
    return {};
  }

  Done too_many_ports(const XmlElement& net) const {
    return wrong(net, "more network ports than a device has", "is it the right file?");
  }

  // NCCL names a merged device after its members, separated by '+'.
  bool is_made_of_others(const std::string& name) const {
    if (name.find('+') == std::string::npos) return false;
    for (std::size_t at = 0; at <= name.size();) {
      const std::size_t end = std::min(name.find('+', at), name.size());
      if (!net_names_.contains(name.substr(at, end - at))) return false;
      at = end + 1;
    }
    return true;
  }

  // For NCCL all display controllers are GPUs. Files for NCCL do not contain console chips.
  DeviceRole role_of(const XmlElement& element, const Node& node) {
    const std::uint32_t base_class = node.pci_class >> 16;
    if (has_child(element, "gpu") || base_class == kDisplayClass ||
        base_class == kAcceleratorClass) {
      return DeviceRole::kGpu;
    }
    if (!os_name(node, OsKind::kRdma).empty()) return DeviceRole::kRdmaNic;
    return base_class == kNetworkClass && node.os_devices.empty() ? DeviceRole::kRdmaNic
                                                                  : DeviceRole::kOther;
  }

  // Reads NICs that are not PCI functions, one for each name. NCCL writes one <nic> for all of
  // them.
  Done read_without_pci(const XmlElement& element, NodeIndex parent) {
    Done done;
    std::map<std::string, Node> nics;
    const auto take = [&](const XmlElement& net) {
      if (!done) return;
      Node& nic = nics.try_emplace(text_of(net, "name"), Node{.parent = parent}).first->second;
      done = nics.size() > kMaxPorts ? too_many_ports(net) : read_net(net, nic);
    };
    if (element.name == "net") take(element);
    each_net(element, take);
    BL_TRY(std::move(done));
    for (auto& [name, nic] : nics) {
      if (nic.os_devices.empty()) continue;
      nic.role = guess_role(nic);
      add(std::move(nic));
    }
    return {};
  }

  void add_summary_remarks() {
    if (nameless_nics_ > 0) {
      remarks_.add("network devices without a name, treated as RDMA NICs: " +
                   std::to_string(nameless_nics_));
    }
    if (classless_.empty()) return;
    const std::size_t others = classless_.size() - 1;
    remarks_.add("devices without a PCI class, which may be GPUs or NICs: " + classless_.front() +
                 (others == 0 ? "" : " and " + std::to_string(others) + " more") +
                 "; run beeline topo on the machine itself, or on a file that NCCL wrote there "
                 "(NCCL_TOPO_DUMP_FILE)");
  }

  const std::string& file_;
  GraphParts parts_;
  Remarks remarks_;
  std::string host_;
  std::map<int, NodeIndex> numas_;
  int nets_ = 0;                                 // so far, in the order of the file
  std::map<PciAddress, std::size_t> addresses_;  // and their lines
  std::set<std::string> net_names_;              // in the whole file
  std::set<std::string> rdma_names_;
  std::vector<Node> merged_functions_;
  std::vector<std::string> classless_;
  std::size_t nameless_nics_ = 0;
};

}  // namespace

Outcome<GraphParts> read_nccl_xml(std::string_view text, const std::string& file) {
  return read_nccl_system(BL_TRY(parse_xml(text, file)), file);
}

Outcome<GraphParts> read_nccl_system(const XmlElement& root, const std::string& file) {
  return NcclReader(file).read(root);
}

}  // namespace beeline::topology
