// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/topology/read/random_machine.h"

#include <random>

namespace beeline::topology {
namespace {

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {
    parts_.nodes.push_back({.kind = NodeKind::kMachine});
  }

  GraphParts make() {
    const bool knows_numa = !one_in(5);
    const int numas = knows_numa ? up_to(4) : 1;
    for (int numa = 0; numa < numas; ++numa) {
      NodeIndex above = 0;
      if (knows_numa) {
        above = add({.kind = NodeKind::kNumaNode, .parent = 0, .number = numa});
        const std::string first = std::to_string(numa * 40);
        parts_.nodes[above].cpus = first + "-" + std::to_string(numa * 40 + 37);
      }
      for (int i = up_to(3); i > 0; --i) add_host_bridge(above);
    }
    return std::move(parts_);
  }

 private:
  int up_to(int most) { return std::uniform_int_distribution<int>(1, most)(random_); }
  bool one_in(int times) { return up_to(times) == 1; }

  NodeIndex add(Node node) {
    parts_.nodes.push_back(std::move(node));
    return parts_.nodes.size() - 1;
  }

  NodeIndex add_pci(NodeKind kind, NodeIndex above) {
    Node node{.kind = kind, .parent = above};
    node.pci = PciAddress{.domain = domain_++, .bus = static_cast<std::uint8_t>(up_to(255))};
    if (kind == NodeKind::kBridge) node.pci_class = 0x060400;
    if (one_in(3)) node.vendor = 0x1000;
    if (!one_in(4)) node.link_max = random_link();
    if (!one_in(4)) node.link_now = random_link();
    return add(std::move(node));
  }

  PcieLink random_link() {
    return {.mega_transfers = one_in(8) ? 0 : std::uint32_t{2'500} << up_to(5),
            .lanes = one_in(8) ? 0 : std::uint32_t{1} << up_to(5)};
  }

  void add_host_bridge(NodeIndex above) {
    const NodeIndex host_bridge = add({.kind = NodeKind::kHostBridge, .parent = above});
    if (one_in(4)) add_devices(host_bridge);
    for (int ports = up_to(3); ports > 0; --ports) {
      fill_port(add_pci(NodeKind::kBridge, host_bridge), 0);
    }
  }

  void fill_port(NodeIndex port, int depth) {
    if (depth == 3 || one_in(2)) return add_devices(port);
    const NodeIndex upstream = add_pci(NodeKind::kBridge, port);
    for (int ports = up_to(4); ports > 0; --ports) {
      fill_port(add_pci(NodeKind::kBridge, upstream), depth + 1);
    }
  }

  void add_devices(NodeIndex above) {
    for (int i = up_to(3) - 1; i > 0; --i) {
      Node& node = parts_.nodes[add_pci(NodeKind::kDevice, above)];
      if (one_in(4)) {
        node.pci_class = 0x010802;
      } else if (one_in(2)) {
        node.pci_class = 0x030200;
        node.role = DeviceRole::kGpu;
      } else {
        make_nic(node);
      }
    }
  }

  void make_nic(Node& node) {
    node.pci_class = 0x020700;
    node.role = DeviceRole::kRdmaNic;
    node.os_devices = {{OsKind::kRdma, "a<\"b\">&_" + std::to_string(domain_)}};
    for (int port = 1; port < up_to(3); ++port) {
      node.nic_ports.push_back(
          {.number = static_cast<std::uint32_t>(port), .speed_mbps = one_in(3) ? 0 : 400'000U});
    }
  }

  std::mt19937 random_;
  GraphParts parts_;
  std::uint32_t domain_ = 0;
};

}  // namespace

GraphParts random_machine(unsigned seed) { return Maker(seed).make(); }

}  // namespace beeline::topology
