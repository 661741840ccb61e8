// SPDX-License-Identifier: Apache-2.0
//
// Turns hwloc's objects into nodes. In hwloc, NUMA nodes and I/O devices are attached to objects of
// the tree of processors. A root bus is attached to a set of processors, not to a NUMA node.
#include "topology/read/hwloc_reader.h"

#include "topology/read/remarks.h"
#include "topology/read/sysfs_devices.h"

#ifdef BL_HAVE_HWLOC

#include <algorithm>
#include <cstring>
#include <optional>

#include "topology/read/hwloc_api.h"
#include "topology/read/sysfs_files.h"
#include "topology/read/sysfs_text.h"
#include "topology/role.h"

namespace beeline::topology {
namespace {

using PciAttributes = hwloc_obj_attr_u::hwloc_pcidev_attr_s;
using BridgeAttributes = hwloc_obj_attr_u::hwloc_bridge_attr_s;

std::string info_of(hwloc_obj_t object, const char* name) {
  for (unsigned i = 0; i < object->infos_count; ++i) {
    if (std::strcmp(object->infos[i].name, name) == 0) return object->infos[i].value;
  }
  return {};
}

PciAddress address_of(const PciAttributes& pci) noexcept {
  return {.domain = pci.domain, .bus = pci.bus, .device = pci.dev, .function = pci.func};
}

OsKind kind_of(hwloc_obj_osdev_type_t type, std::string_view name) noexcept {
  const auto begins = [name](std::string_view with) { return name.starts_with(with); };
  switch (type) {
    case HWLOC_OBJ_OSDEV_OPENFABRICS: return OsKind::kRdma;
    case HWLOC_OBJ_OSDEV_NETWORK: return OsKind::kInterface;
    case HWLOC_OBJ_OSDEV_GPU:
    case HWLOC_OBJ_OSDEV_COPROC: break;
    case HWLOC_OBJ_OSDEV_BLOCK:
    case HWLOC_OBJ_OSDEV_DMA: return OsKind::kOther;
  }
  if (begins("cuda") || begins("nvml") || begins("rsmi") || begins("ze")) return OsKind::kGpu;
  return type == HWLOC_OBJ_OSDEV_GPU ? OsKind::kDisplay : OsKind::kOther;
}

class HwlocReader {
 public:
  HwlocReader(const HwlocApi& api, hwloc_topology_t topology) : api_(api) {
    root_ = api.get_obj_by_depth(topology, 0, 0);
    const int depth = api.get_type_depth(topology, HWLOC_OBJ_NUMANODE);
    numas_ = api.get_nbobjs_by_depth(topology, depth);
  }

  std::vector<Node> read() {
    nodes_.push_back({.kind = NodeKind::kMachine, .name = info_of(root_, "HostName")});
    read_normal(root_, 0);
    return std::move(nodes_);
  }

 private:
  NodeIndex add(Node node) {
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }

  static int number_of(hwloc_obj_t object) noexcept {
    return object->os_index == HWLOC_UNKNOWN_INDEX ? -1 : static_cast<int>(object->os_index);
  }

  std::string cpus_of(hwloc_obj_t object) const {
    if (object->cpuset == nullptr) return {};
    const int size = api_.bitmap_list_snprintf(nullptr, 0, object->cpuset);
    if (size <= 0) return {};
    std::string text(static_cast<std::size_t>(size) + 1, '\0');
    api_.bitmap_list_snprintf(text.data(), text.size(), object->cpuset);
    text.resize(static_cast<std::size_t>(size));
    return text;
  }

  CpuFacts facts_of(hwloc_obj_t package) const {
    const std::string arch = info_of(root_, "Architecture");
    return {.arch = arch == "aarch64"           ? "arm64"
                    : arch.starts_with("ppc64") ? "ppc64"
                                                : arch,
            .vendor = info_of(package, "CPUVendor"),
            .family = parse_int(info_of(package, "CPUFamilyNumber")).value_or(-1),
            .model = parse_int(info_of(package, "CPUModelNumber")).value_or(-1)};
  }

  // Reads processors and the objects that contain them. The recursion is as deep as hwloc's levels.
  void read_normal(hwloc_obj_t object, NodeIndex above) {
    if (object->type == HWLOC_OBJ_PACKAGE) {
      above = add({.kind = NodeKind::kPackage,
                   .parent = 0,
                   .name = info_of(object, "CPUModel"),
                   .number = number_of(object),
                   .cpus = cpus_of(object)});
      nodes_[above].cpu = facts_of(object);
    }
    read_memory(object, above);
    for (hwloc_obj_t io = object->io_first_child; io != nullptr; io = io->next_sibling) {
      read_io(io, {.above = above, .numa = numa_near(object)});
    }
    for (hwloc_obj_t child = object->first_child; child != nullptr; child = child->next_sibling) {
      read_normal(child, above);
    }
  }

  // A memory-side cache has the NUMA node below it.
  void read_memory(hwloc_obj_t object, NodeIndex above) {
    for (hwloc_obj_t at = object->memory_first_child; at != nullptr; at = at->next_sibling) {
      if (at->type == HWLOC_OBJ_NUMANODE && number_of(at) >= 0) {
        add({.kind = NodeKind::kNumaNode,
             .parent = above,
             .number = number_of(at),
             .cpus = cpus_of(at)});
      }
      read_memory(at, above);
    }
  }

  // The NUMA node with the lowest number, since others at the same place are memory on a card or in
  // a stack. -1 if there are several places to choose from.
  int numa_near(hwloc_obj_t object) const {
    for (hwloc_obj_t at = object; at != nullptr; at = at->parent) {
      std::vector<int> here;
      collect_numas(at, here);
      if (here.empty()) continue;
      const bool is_all = here.size() == numas_;
      return at->parent != nullptr || is_all ? *std::ranges::min_element(here) : -1;
    }
    return -1;
  }
  static void collect_numas(hwloc_obj_t object, std::vector<int>& numbers) {
    for (hwloc_obj_t at = object->memory_first_child; at != nullptr; at = at->next_sibling) {
      if (at->type == HWLOC_OBJ_NUMANODE) numbers.push_back(number_of(at));
      collect_numas(at, numbers);
    }
  }

  struct Above {
    NodeIndex above = 0;         // the parent of a bridge or a device
    NodeIndex device = kNoNode;  // the owner of an OS device name
    int numa = -1;
  };

  void read_io(hwloc_obj_t object, Above at) {
    if (object->type == HWLOC_OBJ_BRIDGE) {
      at.above = add(bridge_of(object, at));
      at.device = kNoNode;
    } else if (object->type == HWLOC_OBJ_PCI_DEVICE) {
      at.device = add(device_of(object, at));
    } else if (object->type == HWLOC_OBJ_OS_DEVICE) {
      at.device = read_name(object, at);
    }
    for (hwloc_obj_t io = object->io_first_child; io != nullptr; io = io->next_sibling) {
      read_io(io, at);
    }
    if (object->type != HWLOC_OBJ_OS_DEVICE && at.device != kNoNode) {
      nodes_[at.device].role = guess_role(nodes_[at.device]);
    }
  }

  Node bridge_of(hwloc_obj_t object, const Above& at) const {
    const BridgeAttributes& bridge = object->attr->bridge;
    // A bridge below another bridge is no host bridge, even if hwloc calls it one (VMD).
    const bool below_bridge = nodes_[at.above].kind == NodeKind::kBridge;
    if (bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST && !below_bridge) {
      Node node{.kind = NodeKind::kHostBridge, .parent = at.above, .numa = at.numa};
      node.pci = PciAddress{.domain = bridge.downstream.pci.domain,
                            .bus = bridge.downstream.pci.secondary_bus};
      return node;
    }
    Node node{.kind = NodeKind::kBridge, .parent = at.above};
    if (bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI) identify(node, bridge.upstream.pci);
    return node;
  }

  static Node device_of(hwloc_obj_t object, const Above& at) {
    Node node{.kind = NodeKind::kDevice, .parent = at.above};
    node.name = info_of(object, "PCIDevice");
    identify(node, object->attr->pcidev);
    return node;
  }

  static void identify(Node& node, const PciAttributes& pci) {
    node.pci = address_of(pci);
    node.pci_class = std::uint32_t{pci.class_id} << 8;
    node.vendor = pci.vendor_id;
    node.device = pci.device_id;
    // The current bandwidth. On a live machine sysfs also has the generation and the lanes.
    node.link_now = link_that_carries(pci.linkspeed);
  }

  // Returns the device that has the name.
  NodeIndex read_name(hwloc_obj_t object, const Above& at) {
    if (object->name == nullptr) return at.device;
    const OsKind kind = kind_of(object->attr->osdev.type, object->name);
    NodeIndex device = at.device;
    if (device == kNoNode) {
      if (kind != OsKind::kRdma) return kNoNode;
      device = add({.kind = NodeKind::kDevice, .parent = at.above});
    }
    Node& node = nodes_[device];
    node.os_devices.push_back({kind, object->name});
    if (at.device == kNoNode) node.role = guess_role(node);
    if (const std::string model = info_of(object, "GPUModel"); !model.empty()) node.name = model;
    if (node.uuid.empty()) node.uuid = info_of(object, "NVIDIAUUID");
    return device;
  }

  const HwlocApi& api_;
  hwloc_obj_t root_ = nullptr;
  unsigned numas_ = 0;
  std::vector<Node> nodes_;
};

Outcome<void> load(const HwlocApi& api, hwloc_topology_t topology) {
  if (api.topology_load(topology) != 0) return fail(std::string("hwloc_topology_load failed"));
  if (api.topology_abi_check(topology) == 0) return {};
  return fail(std::string("hwloc's ABI differs from the one that this program was built for"));
}

// If this folder exists and is empty, as in some sandboxes, an assertion in hwloc ends the process.
Outcome<void> check_numa_folder() {
  const std::string folder = "/sys/devices/system/node";
  const auto is_numa = [](const std::string& name) { return name.starts_with("node"); };
  if (!is_there(folder) || std::ranges::any_of(names_in(folder), is_numa)) return {};
  return fail("hwloc would abort, because there is no NUMA node in " + folder);
}

// From the first element on, without comments: hwloc's own parser, which it uses without libxml2,
// refuses comments, and empty lines before the first element. In XML that expat has accepted,
// "<!--" begins a comment wherever it stands, except in CDATA, which hwloc does not write.
std::string without_comments(std::string xml) {
  for (auto at = xml.find("<!--"); at != std::string::npos; at = xml.find("<!--", at)) {
    const auto end = xml.find("-->", at);
    xml.erase(at, end == std::string::npos ? end : end + 3 - at);
  }
  return xml.erase(0, xml.find("<topology"));
}

// hwloc 2 reads files of version 2, and of version 1, which contain no version.
Outcome<void> check_version(const std::string& xml, const std::string& file) {
  constexpr std::string_view kVersion = "version=\"";
  const std::string start = xml.substr(0, xml.find('>'));
  const auto at = start.find(kVersion);
  if (at == std::string::npos) return {};
  const std::string version = start.substr(at + kVersion.size(), 1);
  if (parse_int(version).value_or(0) <= 2) return {};
  return fail(file + ": written by hwloc " + version +
              ", but this machine has hwloc 2; write it again with lstopo --of v2xml FILE");
}

}  // namespace

Outcome<GraphParts> read_hwloc() {
  BL_TRY(check_numa_folder());
  const HwlocApi api = BL_TRY(load_hwloc());
  const HwlocTopology topology = BL_TRY(new_hwloc_topology(api));
  // A container may be restricted to a few processors and still use a GPU that is near others.
  (void)api.topology_set_flags(topology.get(), HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  BL_TRY(load(api, topology.get()));
  GraphParts parts;
  parts.source = "this machine";
  parts.nodes = HwlocReader(api, topology.get()).read();
  Remarks remarks;
  // Users can make hwloc read another machine with its own environment variables.
  if (api.topology_is_thissystem(topology.get()) != 0) {
    add_sysfs_devices(parts.nodes, "/sys", remarks);
  } else {
    parts.source = "another machine (hwloc)";
    remarks.add("a variable makes hwloc show another machine (HWLOC_XMLFILE, HWLOC_FSROOT, ...)");
  }
  parts.remarks = remarks.take();
  return parts;
}

Outcome<GraphParts> read_hwloc_xml(const std::string& text, const std::string& file) {
  const std::string xml = without_comments(text);
  BL_TRY(check_version(xml, file));
  const HwlocApi api = BL_TRY(load_hwloc());
  const HwlocTopology topology = BL_TRY(new_hwloc_topology(api));
  const auto size = static_cast<int>(xml.size()) + 1;  // hwloc counts the terminating 0
  if (api.topology_set_xmlbuffer(topology.get(), xml.c_str(), size) != 0 ||
      !load(api, topology.get())) {
    return fail(file + ": hwloc cannot read it; write it again with lstopo --of xml FILE");
  }
  GraphParts parts;
  parts.source = file + " (hwloc)";
  parts.nodes = HwlocReader(api, topology.get()).read();
  parts.remarks = {
      "hwloc's files contain no speeds of network ports, and of a PCIe link only its bandwidth "
      "when "
      "the file was written; its generation and lanes are guessed from that"};
  return parts;
}

}  // namespace beeline::topology

#else

namespace beeline::topology {

Outcome<GraphParts> read_hwloc() {
  return fail(std::string("built without hwloc's header (package libhwloc-dev)"));
}

Outcome<GraphParts> read_hwloc_xml(const std::string& /*xml*/, const std::string& file) {
  return fail(file + ": built without hwloc's header (package libhwloc-dev)");
}

}  // namespace beeline::topology

#endif
