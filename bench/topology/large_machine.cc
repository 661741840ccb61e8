// SPDX-License-Identifier: Apache-2.0
#include "bench/topology/large_machine.h"

#include <string>

namespace beeline::bench {
namespace {

using namespace beeline::topology;

constexpr std::size_t kHostBridgesPerNuma = 4;
constexpr std::size_t kPortsPerHostBridge = 4;
constexpr std::size_t kSwitches = kNumaNodes * kHostBridgesPerNuma * kPortsPerHostBridge;
constexpr PcieLink kLink = {.mega_transfers = 32'000, .lanes = 16};

class Maker {
 public:
  Maker() {
    parts_.source = "a large machine";
    parts_.nodes.push_back({.kind = NodeKind::kMachine});
    for (std::size_t numa = 0; numa < kNumaNodes; ++numa) {
      const std::string first = std::to_string(numa * 64);
      Node node{.kind = NodeKind::kNumaNode, .parent = 0, .number = static_cast<int>(numa)};
      node.cpus = first + "-" + std::to_string(numa * 64 + 63);
      numas_.push_back(add(std::move(node)));
    }
  }

  NodeIndex host_bridge(std::size_t numa) { return pci(NodeKind::kHostBridge, numas_[numa]); }

  // A root port, and a switch with this number of GPUs and NICs below it.
  void add_switch(NodeIndex host_bridge, std::size_t gpus, std::size_t nics) {
    const NodeIndex upstream = pci(NodeKind::kBridge, pci(NodeKind::kBridge, host_bridge));
    for (std::size_t i = 0; i < gpus; ++i) add_gpu(pci(NodeKind::kBridge, upstream));
    for (std::size_t i = 0; i < nics; ++i) add_nic(pci(NodeKind::kBridge, upstream));
  }

  GraphParts take() { return std::move(parts_); }

 private:
  NodeIndex add(Node node) {
    parts_.nodes.push_back(std::move(node));
    return parts_.nodes.size() - 1;
  }

  // Each has its own PCI domain, since a domain has few buses.
  NodeIndex pci(NodeKind kind, NodeIndex above) {
    Node node{.kind = kind, .parent = above};
    node.pci = PciAddress{.domain = domains_++};
    if (kind != NodeKind::kHostBridge) node.link_now = node.link_max = kLink;
    return add(std::move(node));
  }

  void add_gpu(NodeIndex port) {
    Node& node = parts_.nodes[pci(NodeKind::kDevice, port)];
    node.role = DeviceRole::kGpu;
    node.pci_class = 0x030200;
  }

  void add_nic(NodeIndex port) {
    Node& node = parts_.nodes[pci(NodeKind::kDevice, port)];
    node.role = DeviceRole::kRdmaNic;
    node.pci_class = 0x020700;
    node.os_devices = {{OsKind::kRdma, "mlx5_" + std::to_string(nics_++)}};
    node.nic_ports = {{.number = 1, .speed_mbps = 400'000}};
  }

  GraphParts parts_;
  std::vector<NodeIndex> numas_;
  std::uint32_t domains_ = 0;
  std::size_t nics_ = 0;
};

}  // namespace

GraphParts switched_machine() {
  Maker maker;
  for (std::size_t numa = 0; numa < kNumaNodes; ++numa) {
    for (std::size_t i = 0; i < kHostBridgesPerNuma; ++i) {
      const NodeIndex host_bridge = maker.host_bridge(numa);
      for (std::size_t port = 0; port < kPortsPerHostBridge; ++port) {
        maker.add_switch(host_bridge, kGpus / kSwitches, kNics / kSwitches);
      }
    }
  }
  return maker.take();
}

GraphParts tied_machine() {
  Maker maker;
  maker.add_switch(maker.host_bridge(0), kGpus, kNics);
  return maker.take();
}

}  // namespace beeline::bench
