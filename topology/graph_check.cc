// SPDX-License-Identifier: Apache-2.0
//
// Refuses nodes that cannot form a machine. They may come from a file that anyone wrote.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "topology/graph_build.h"
#include "topology/pcie_link.h"

namespace beeline::topology {
namespace {

constexpr std::uint32_t kMaxMegaTransfers = 1'000'000;
// GPUs and ports of RDMA NICs together. Tables grow with the product of the two.
constexpr std::size_t kMaxDevices = 4096;

using Checked = Outcome<void>;

Failure<Problem> wrong(const Node& node, const std::string& what) {
  return fail(Problem(label(node) + ": " + what));
}

Checked check_parent(const std::vector<Node>& nodes, const Node& node) {
  if (node.kind == NodeKind::kMachine) {
    return node.parent == kNoNode ? Checked() : wrong(node, "is the root, but has a parent");
  }
  if (node.parent >= nodes.size()) return wrong(node, "is below a node that does not exist");
  const Node& parent = nodes[node.parent];
  const bool bridges = node.kind == NodeKind::kBridge && parent.kind == NodeKind::kBridge;
  if (parent.kind < node.kind || bridges) return {};
  return wrong(node, "cannot be below " + label(parent));
}

// The kind of a child is greater than its parent's, except for bridges, so only bridges can be in a
// cycle.
Checked check_depth(const std::vector<Node>& nodes, const Node& node) {
  int bridges = 0;
  for (const Node* at = &node; at->kind == NodeKind::kBridge; at = &nodes[at->parent]) {
    if (++bridges > kMaxBridgesInARow) return wrong(node, "is in a cycle of bridges");
  }
  return {};
}

bool is_sane(const PcieLink& link) noexcept {
  return link.lanes <= kMaxPcieLanes && link.mega_transfers <= kMaxMegaTransfers;
}

Checked check_numbers(const Node& node) {
  const auto in_range = [](int number) { return number >= -1 && number <= kMaxNumber; };
  if (!in_range(node.number)) return wrong(node, "has an impossible number");
  if (!in_range(node.numa)) return wrong(node, "has an impossible NUMA node number");
  if (node.kind == NodeKind::kNumaNode && node.number < 0) return wrong(node, "has no number");
  if (node.pci && (node.pci->device > 31 || node.pci->function > 7)) {
    return wrong(node, "has an impossible PCI address");
  }
  if (!in_range(node.gpu.number)) return wrong(node, "has an impossible GPU number");
  if (!is_sane(node.link_now) || !is_sane(node.link_max)) {
    return wrong(node, "has a PCIe link with an impossible rate or width");
  }
  return {};
}

Checked check_kind(const std::vector<Node>& nodes, const Node& node) {
  if (node.port != BridgePort::kUnknown && node.kind != NodeKind::kBridge) {
    return wrong(node, "is marked as the port of a bridge, but is not a bridge");
  }
  if (node.kind != NodeKind::kDevice && node.role != DeviceRole::kOther) {
    return wrong(node,
                 std::string("has the role ") + to_string(node.role) + ", but is not a device");
  }
  if (node.physical_function == kNoNode) return {};
  if (node.kind != NodeKind::kDevice || node.physical_function >= nodes.size()) {
    return wrong(node, "is a virtual function, but its physical function does not exist");
  }
  const Node& physical = nodes[node.physical_function];
  if (physical.kind != NodeKind::kDevice || physical.physical_function != kNoNode) {
    return wrong(node, "is a virtual function of something that is not a physical function");
  }
  return {};
}

Checked check_devices(const std::vector<Node>& nodes) {
  std::size_t devices = 0;
  for (const Node& node : nodes) {
    if (node.role == DeviceRole::kOther) continue;
    devices += std::max<std::size_t>(1, node.nic_ports.size());
  }
  if (devices <= kMaxDevices) return {};
  return fail(std::to_string(devices) + " GPUs and RDMA NIC ports; at most " +
              std::to_string(kMaxDevices) + " are supported");
}

// Checks for duplicates. A device may have the same address as a host bridge, which has no address
// of its own.
class UniquenessCheck {
 public:
  Checked check(const Node& node) {
    const bool is_host_bridge = node.kind == NodeKind::kHostBridge;
    if (node.pci && !(is_host_bridge ? root_buses_ : addresses_).insert(*node.pci).second) {
      return wrong(node, "appears twice");
    }
    if (node.number >= 0 && !numbers_.insert({node.kind, node.number}).second) {
      return wrong(node, "appears twice");
    }
    for (const OsDevice& device : node.os_devices) {
      if (device.kind == OsKind::kRdma && !rdma_.insert(device.name).second) {
        return wrong(node, "RDMA device " + device.name + " appears twice");
      }
    }
    return {};
  }

 private:
  std::set<PciAddress> addresses_;
  std::set<PciAddress> root_buses_;
  std::set<std::pair<NodeKind, int>> numbers_;
  std::set<std::string> rdma_;
};

}  // namespace

Outcome<void> check_nodes(const std::vector<Node>& nodes) {
  UniquenessCheck unique;
  std::size_t machines = 0;
  for (const Node& node : nodes) {
    machines += node.kind == NodeKind::kMachine ? 1 : 0;
    BL_TRY(check_parent(nodes, node));
    BL_TRY(check_numbers(node));
    BL_TRY(check_kind(nodes, node));
    BL_TRY(unique.check(node));
  }
  for (const Node& node : nodes) BL_TRY(check_depth(nodes, node));
  BL_TRY(check_devices(nodes));
  if (machines != 1)
    return fail(std::to_string(machines) +
                " machines in one description; there must be exactly one");
  return {};
}

}  // namespace beeline::topology
