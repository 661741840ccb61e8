// SPDX-License-Identifier: Apache-2.0
//
// Checks properties that hold for any machine, with many random machines. A failure prints its
// seed.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/support/catch.h"
#include "tests/tools/topology/machine_text.h"
#include "topology/assignment.h"
#include "topology/nccl_choice.h"

using namespace beeline::topology;

namespace {

constexpr unsigned kMachines = 150;

// A valid PCIe tree: below a port there are functions, or one switch.
class RandomMachine {
 public:
  explicit RandomMachine(unsigned seed, bool with_links = false)
      : random_(seed), with_links_(with_links) {
    parts_.nodes.push_back({.kind = NodeKind::kMachine});
    const bool has_packages = one_in(2);
    const bool has_numa = !one_in(5);
    for (int package = 0; package < (has_packages ? up_to(2) : 1); ++package) {
      const NodeIndex above = has_packages ? add(NodeKind::kPackage, 0, package) : 0;
      const int numas = has_numa ? up_to(3) : 1;
      for (int numa = 0; numa < numas; ++numa) {
        add_host_bridges(has_numa ? add(NodeKind::kNumaNode, above, numas_++) : above);
      }
    }
  }

  GraphParts parts() const { return parts_; }

 private:
  int up_to(int most) { return std::uniform_int_distribution<int>(1, most)(random_); }
  bool one_in(int times) { return up_to(times) == 1; }

  NodeIndex add(NodeKind kind, NodeIndex parent, int number = -1) {
    Node node{.kind = kind, .parent = parent, .number = number};
    if (kind > NodeKind::kNumaNode) {
      node.pci = PciAddress{.domain = static_cast<std::uint32_t>(parts_.nodes.size())};
    }
    parts_.nodes.push_back(std::move(node));
    return parts_.nodes.size() - 1;
  }

  void add_host_bridges(NodeIndex above) {
    for (int i = up_to(3); i > 0; --i) {
      const NodeIndex host_bridge = add(NodeKind::kHostBridge, above);
      if (one_in(4)) add_devices(host_bridge);
      for (int ports = up_to(3); ports > 0; --ports) {
        fill_port(add(NodeKind::kBridge, host_bridge), 0);
      }
    }
  }

  void fill_port(NodeIndex port, int depth) {
    if (depth == 3 || one_in(2)) return add_devices(port);
    const NodeIndex upstream = add(NodeKind::kBridge, port);
    parts_.nodes[upstream].link_max = some_link();
    for (int ports = up_to(4); ports > 0; --ports) {
      fill_port(add(NodeKind::kBridge, upstream), depth + 1);
    }
  }

  void add_devices(NodeIndex above) {
    for (int i = up_to(3) - 1; i > 0; --i) {
      const NodeIndex device = add(NodeKind::kDevice, above);
      Node& node = parts_.nodes[device];
      node.link_max = some_link();
      if (one_in(4)) continue;
      node.role = one_in(2) ? DeviceRole::kGpu : DeviceRole::kRdmaNic;
      if (node.role == DeviceRole::kGpu) continue;
      node.os_devices = {{OsKind::kRdma, "rdma" + std::to_string(device)}};
      if (!with_links_) continue;
      node.nic_ports = {{.speed_mbps = std::uint32_t{25'000} << up_to(4)}};
    }
  }

  PcieLink some_link() {
    if (!with_links_) return {};
    return {.mega_transfers = std::uint32_t{4'000} << up_to(3), .lanes = one_in(3) ? 8U : 16U};
  }

  std::mt19937 random_;
  bool with_links_;
  GraphParts parts_;
  int numas_ = 0;
};

Graph graph_of(const GraphParts& parts) {
  auto graph = Graph::make(parts);
  REQUIRE(graph);
  return *std::move(graph);
}

bool has_kind(const Graph& graph, NodeKind kind) {
  return std::ranges::any_of(graph.nodes(), [kind](const Node& node) { return node.kind == kind; });
}

// The paths from one node to all others, found by a complete search. It uses only parents and kinds
// of nodes, but not Distances, path_between or the derived kinds of ports.
class Walks {
 public:
  Walks(const Graph& graph, NodeIndex from) : graph_(graph), came_from_(graph.size(), kNoNode) {
    std::vector<std::vector<NodeIndex>> neighbors(graph.size());
    for (NodeIndex i = 0; i < graph.size(); ++i) {
      if (graph[i].parent == kNoNode) continue;
      neighbors[i].push_back(graph[i].parent);
      neighbors[graph[i].parent].push_back(i);
    }
    std::vector<NodeIndex> reached = {from};
    came_from_[from] = from;
    for (std::size_t at = 0; at < reached.size(); ++at) {
      for (const NodeIndex next : neighbors[reached[at]]) {
        if (came_from_[next] != kNoNode) continue;
        came_from_[next] = reached[at];
        reached.push_back(next);
      }
    }
  }

  // The distance as in Distances::rank, from the topmost node of the path.
  int rank(NodeIndex to) const {
    NodeKind highest = graph_[to].kind;
    int switches = 0;
    for (NodeIndex at = to;; at = came_from_[at]) {
      highest = std::min(highest, graph_[at].kind);
      if (is_switch(at)) ++switches;
      if (came_from_[at] == at) break;
    }
    switch (highest) {
      case NodeKind::kDevice: return 0;
      case NodeKind::kBridge: return switches <= 1 ? 1 : 2;
      case NodeKind::kHostBridge: return 3;
      case NodeKind::kNumaNode: return 4;
      case NodeKind::kPackage: return has_kind(graph_, NodeKind::kNumaNode) ? 5 : 4;
      case NodeKind::kMachine:
        return has_kind(graph_, NodeKind::kNumaNode) || has_kind(graph_, NodeKind::kPackage) ? 6
                                                                                             : 4;
    }
    return -1;
  }

  // The distance in NCCL's terms, which do not include host bridges.
  NcclPathType path(NodeIndex to) const {
    const int far = rank(to);
    if (far <= 2) return far == 1 ? NcclPathType::kPix : NcclPathType::kPxb;
    return far <= 4 || !has_kind(graph_, NodeKind::kNumaNode) ? NcclPathType::kPhb
                                                              : NcclPathType::kSys;
  }

  // NCCL's bandwidth of the path: three quarters of the bits of each lane, and at most 10 GB/s
  // between unknown processors.
  float bandwidth(NodeIndex to) const {
    const Node& nic = graph_[to];
    double least = nic.nic_ports.empty() ? 5000.0 : nic.nic_ports[0].speed_mbps / 8'000.0;
    if (path(to) == NcclPathType::kSys) least = std::min(least, 10.0);
    std::set<NodeIndex> way = {to};
    for (NodeIndex at = to; came_from_[at] != at; at = came_from_[at]) way.insert(came_from_[at]);
    for (const NodeIndex at : way) {
      const bool is_top = !way.contains(graph_[at].parent);
      if (is_top || !(graph_[at].kind == NodeKind::kDevice || is_switch(at))) continue;
      const PcieLink& link = graph_[at].link_max;
      const double rate = link.lanes * link.mega_transfers * 0.75 / 8'000;
      least = std::min(least, link.lanes == 0 ? 12.0 : rate);
    }
    return static_cast<float>(least);
  }

 private:
  // Ports alternate: below a root port the upstream port of a switch, below that its downstream
  // ports.
  bool is_switch(NodeIndex node) const {
    int bridges = 0;
    for (; graph_[node].kind == NodeKind::kBridge; node = graph_[node].parent) ++bridges;
    return bridges > 0 && bridges % 2 == 0;
  }

  const Graph& graph_;
  std::vector<NodeIndex> came_from_;  // the neighbor towards the start; the start has itself
};

// The fastest of all NICs, and of these the nearest.
std::vector<NodeIndex> walked_best(const Graph& graph, NodeIndex gpu) {
  const Walks walks(graph, gpu);
  std::map<std::pair<float, NcclPathType>, std::vector<NodeIndex>> by_way;
  for (const NodeIndex nic : graph.nics()) {
    by_way[{-walks.bandwidth(nic), walks.path(nic)}].push_back(nic);
  }
  return by_way.empty() ? std::vector<NodeIndex>() : by_way.begin()->second;
}

// By names, which do not depend on the order of the nodes.
using Names = std::vector<std::vector<std::string>>;
Names names_of(const Graph& graph) {
  Names names;
  for (const GpuAssignment& given : assign(graph).gpus) {
    auto& line = names.emplace_back();
    line.push_back(label(graph[given.gpu]));
    for (const NodeIndex nic : given.nics) line.push_back(label(graph[nic]));
    line.emplace_back("then");
    for (const NodeIndex nic : given.standby) line.push_back(label(graph[nic]));
    line.push_back(given.reason);
  }
  return names;
}

bool contains(const std::vector<NodeIndex>& list, NodeIndex value) {
  return std::ranges::find(list, value) != list.end();
}

}  // namespace

TEST_CASE("property: distances are those of a walk") {
  for (unsigned seed = 0; seed < kMachines; ++seed) {
    const Graph graph = graph_of(RandomMachine(seed).parts());
    const Distances places(graph);
    std::vector<NodeIndex> devices(graph.gpus().begin(), graph.gpus().end());
    devices.insert(devices.end(), graph.nics().begin(), graph.nics().end());
    bool all_right = true;
    for (const NodeIndex a : devices) {
      const Walks walks(graph, a);
      for (const NodeIndex b : devices) {
        all_right = all_right && places.rank(a, b) == walks.rank(b);
      }
    }
    INFO("seed " << seed);
    CHECK(all_right);
  }
}

TEST_CASE("property: every GPU has the best NICs, and its share of them") {
  std::size_t ties = 0;
  std::size_t groups = 0;
  for (unsigned seed = 0; seed < kMachines; ++seed) {
    INFO("seed " << seed);
    const Graph graph = graph_of(RandomMachine(seed).parts());
    const Assignment result = assign(graph);
    std::map<NodeIndex, int> uses;
    for (const NodeIndex nic : graph.nics()) uses[nic] = 0;
    for (const GpuAssignment& given : result.gpus) {
      for (const NodeIndex nic : given.nics) ++uses[nic];
    }
    std::map<std::vector<NodeIndex>, std::set<std::size_t>> shares;
    for (const GpuAssignment& given : result.gpus) {
      const std::vector<NodeIndex> best = walked_best(graph, given.gpu);
      CHECK(given.nics.empty() == graph.nics().empty());
      CHECK(given.nics.size() + given.standby.size() == graph.nics().size());
      for (const NodeIndex nic : given.nics) {
        CHECK(contains(best, nic));
        CHECK_FALSE(contains(given.standby, nic));
        for (const NodeIndex other : best) CHECK(uses[nic] <= uses[other] + 1);
      }
      shares[best].insert(given.nics.size());
      ties += best.size() > 1 ? 1 : 0;
      groups += given.nics.size() > 1 ? 1 : 0;
    }
    for (const auto& [best, sizes] : shares) CHECK(sizes.size() == 1);
    CHECK(static_cast<std::size_t>(std::ranges::count_if(
              uses, [](const auto& use) { return use.second == 0; })) == result.spares.size());
  }
  CHECK(ties > kMachines);  // enough machines have ties
  CHECK(groups > kMachines / 4);
}

TEST_CASE("property: what NCCL chooses is the fastest, then the nearest, by a walk") {
  std::size_t slow_and_near = 0;
  for (unsigned seed = 0; seed < kMachines; ++seed) {
    INFO("seed " << seed);
    const Graph graph = graph_of(RandomMachine(seed, true).parts());
    for (const NcclChoice& choice : nccl_choices(graph)) {
      std::vector<NodeIndex> equals = choice.equals;
      std::ranges::sort(equals);
      std::vector<NodeIndex> walked = walked_best(graph, choice.gpu);
      std::ranges::sort(walked);
      CHECK(equals == walked);
      const Walks walks(graph, choice.gpu);
      slow_and_near += std::ranges::any_of(
          graph.nics(), [&](NodeIndex nic) { return walks.path(nic) < choice.path_type; });
    }
    for (const GpuAssignment& given : assign(graph).gpus) {
      const std::vector<NodeIndex> walked = walked_best(graph, given.gpu);
      for (const NodeIndex nic : given.nics) CHECK(contains(walked, nic));
    }
  }
  CHECK(slow_and_near > kMachines / 4);
}

TEST_CASE("property: standby NICs come in order of distance") {
  for (unsigned seed = 0; seed < kMachines; ++seed) {
    const Graph graph = graph_of(RandomMachine(seed).parts());
    const Assignment result = assign(graph);
    INFO("seed " << seed);
    CHECK(std::ranges::all_of(result.gpus, [&graph](const GpuAssignment& given) {
      const Walks walks(graph, given.gpu);
      return std::ranges::is_sorted(given.standby, {},
                                    [&](NodeIndex nic) { return walks.rank(nic); });
    }));
  }
}

TEST_CASE("property: the order of the nodes never changes a result") {
  for (unsigned seed = 0; seed < kMachines; ++seed) {
    const GraphParts parts = RandomMachine(seed).parts();
    const Graph expected = graph_of(parts);
    const Graph other = graph_of(shuffled(parts, seed + 1));
    INFO("seed " << seed);
    CHECK(std::ranges::equal(other.nodes(), expected.nodes()));
    CHECK(names_of(other) == names_of(expected));
  }
}
