// SPDX-License-Identifier: Apache-2.0
#include "topology/node.h"

namespace beeline::topology {
namespace {

std::string with_number(const Node& node) {
  std::string text = to_string(node.kind);
  if (node.number >= 0) text += " " + std::to_string(node.number);
  return text;
}

std::string with_address(const char* word, const Node& node) {
  if (node.pci) return std::string(word) + " " + to_string(*node.pci);
  return node.name.empty() ? std::string(word) : std::string(word) + " " + node.name;
}

std::string device_label(const Node& node) {
  switch (node.role) {
    case DeviceRole::kGpu: return with_address("GPU", node);
    case DeviceRole::kRdmaNic: {
      const std::string& name = os_name(node, OsKind::kRdma);
      return name.empty() ? with_address("NIC", node) : name;
    }
    case DeviceRole::kOther: return with_address("device", node);
  }
  return {};
}

}  // namespace

const char* to_string(NodeKind kind) noexcept {
  switch (kind) {
    case NodeKind::kMachine: return "machine";
    case NodeKind::kPackage: return "package";
    case NodeKind::kNumaNode: return "NUMA node";
    case NodeKind::kHostBridge: return "host bridge";
    case NodeKind::kBridge: return "bridge";
    case NodeKind::kDevice: return "device";
  }
  return "?";
}

const char* to_string(LinkLayer layer) noexcept {
  switch (layer) {
    case LinkLayer::kUnknown: return "unknown";
    case LinkLayer::kInfiniBand: return "InfiniBand";
    case LinkLayer::kEthernet: return "Ethernet";
  }
  return "?";
}

const char* to_string(DeviceRole role) noexcept {
  switch (role) {
    case DeviceRole::kOther: return "other";
    case DeviceRole::kGpu: return "GPU";
    case DeviceRole::kRdmaNic: return "RDMA NIC";
  }
  return "?";
}

const std::string& os_name(const Node& node, OsKind kind) noexcept {
  static const std::string none;
  for (const OsDevice& device : node.os_devices) {
    if (device.kind == kind) return device.name;
  }
  return none;
}

std::string label(const Node& node) {
  switch (node.kind) {
    case NodeKind::kMachine: return "machine";
    case NodeKind::kPackage:
    case NodeKind::kNumaNode: return with_number(node);
    case NodeKind::kHostBridge:
    case NodeKind::kBridge: return with_address(to_string(node.kind), node);
    case NodeKind::kDevice: return device_label(node);
  }
  return {};
}

}  // namespace beeline::topology
