// SPDX-License-Identifier: Apache-2.0
#include "topology/render/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "topology/assignment.h"
#include "topology/distance.h"
#include "topology/link_state.h"
#include "topology/render/display_names.h"
#include "topology/render/gpu_links.h"
#include "topology/render/name_list.h"
#include "topology/render/report.h"
#include "topology/render/utf8.h"

namespace beeline::topology {
namespace {

// The facts about a node, in the order of the output. "": unknown.
using Facts = std::vector<std::pair<const char*, std::string>>;

bool is_device(const Node& node) { return node.kind == NodeKind::kDevice; }

// A key that identifies the same node in both machines.
std::string key_of(const Node& node) {
  if (is_device(node)) return node.pci ? to_string(*node.pci) : label(node);
  return label(node);
}

std::string number_text(int number) { return number < 0 ? "" : std::to_string(number); }

std::string names_text(const Node& node, OsKind kind) {
  std::string text;
  for (const OsDevice& device : node.os_devices) {
    if (device.kind == kind) text += (text.empty() ? "" : " ") + device.name;
  }
  return text;
}

std::string list_or_none(const std::string& list) { return list.empty() ? "none" : list; }

std::string link_text(const PcieLink& link) { return link.is_known() ? to_string(link) : ""; }

Facts facts_of(const Graph& graph, NodeIndex index) {
  const Node& node = graph[index];
  Facts facts{{"CPUs", node.cpus}};
  if (node.kind < NodeKind::kHostBridge) return facts;
  facts.emplace_back("NUMA node", number_text(node.numa));
  facts.emplace_back("parent", key_of(graph[node.parent]));
  if (!has_link_above(node)) return facts;
  const LinkState link = link_above(graph, index);
  const bool is_idle = link.verdict == LinkVerdict::kIdle;
  facts.emplace_back("link", link_text(is_idle ? link.possible : link.now));
  facts.emplace_back("possible link", link_text(link.possible));
  if (!is_device(node)) return facts;
  facts.emplace_back("role", node.role == DeviceRole::kOther ? "" : to_string(node.role));
  facts.emplace_back("model", node.name);
  facts.emplace_back("other links", gpu_links_text(node));
  facts.emplace_back("RDMA device", names_text(node, OsKind::kRdma));
  facts.emplace_back("interface", names_text(node, OsKind::kInterface));
  facts.emplace_back("ports", ports_text(node));
  facts.emplace_back("bond", node.bond);
  return facts;
}

// GPUs, RDMA NICs, and everything above them.
std::vector<NodeIndex> compared_nodes(const Graph& graph) {
  std::vector<NodeIndex> nodes(graph.gpus().begin(), graph.gpus().end());
  nodes.insert(nodes.end(), graph.nics().begin(), graph.nics().end());
  std::vector<bool> is_above(graph.size(), false);
  for (const NodeIndex node : nodes) {
    for (NodeIndex i = graph[node].parent; i != kNoNode; i = graph[i].parent) is_above[i] = true;
  }
  for (NodeIndex i = 1; i < graph.size(); ++i) {  // without the machine itself
    if (is_above[i]) nodes.push_back(i);
  }
  return nodes;
}

// One of the two machines.
struct Side {
  explicit Side(const Graph& machine)
      : graph(machine),
        names(machine),
        distances(machine),
        assignment(assign(machine)),
        nodes(compared_nodes(machine)) {
    for (const NodeIndex node : nodes) by_key.emplace(key_of(machine[node]), node);
  }

  const Graph& graph;
  DisplayNames names;
  Distances distances;
  Assignment assignment;
  std::vector<NodeIndex> nodes;
  std::map<std::string, NodeIndex> by_key = {};
};

class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  Difference run() {
    for (const NodeIndex node : a_.nodes) {
      const NodeIndex same = find(b_, a_.graph[node]);
      same == kNoNode ? lines_.add("only in A", a_.names[node]) : compare_nodes(node, same);
    }
    for (const NodeIndex node : b_.nodes) {
      if (find(a_, b_.graph[node]) == kNoNode) lines_.add("only in B", label(b_.graph[node]));
    }
    compare_distances();
    compare_assignments();
    return {.text = lines_.text(), .not_compared = not_compared_};
  }

 private:
  static NodeIndex find(const Side& side, const Node& node) {
    const auto found = side.by_key.find(key_of(node));
    return found == side.by_key.end() ? kNoNode : found->second;
  }
  NodeIndex in_b(NodeIndex node) const { return find(b_, a_.graph[node]); }

  void say(const std::string& name, const char* what, const std::string& a, const std::string& b) {
    if (a.empty() != b.empty()) ++not_compared_;
    if (a == b || a.empty() || b.empty()) return;
    lines_.add(fmt::format("{} {} in A, {} in B", what, a, b), name);
  }

  void compare_nodes(NodeIndex a, NodeIndex b) {
    const Facts facts_a = facts_of(a_.graph, a);
    const Facts facts_b = facts_of(b_.graph, b);
    for (std::size_t i = 0; i < std::min(facts_a.size(), facts_b.size()); ++i) {
      say(a_.names[a], facts_a[i].first, facts_a[i].second, facts_b[i].second);
    }
  }

  void compare_distances() {
    for (const NodeIndex gpu : a_.graph.gpus()) {
      for (const NodeIndex nic : a_.graph.nics()) {
        const NodeIndex gpu_b = in_b(gpu);
        const NodeIndex nic_b = in_b(nic);
        if (gpu_b == kNoNode || nic_b == kNoNode) continue;
        say(a_.names[gpu], ("distance to " + a_.names[nic]).c_str(),
            to_string(a_.distances.between(gpu, nic)),
            to_string(b_.distances.between(gpu_b, nic_b)));
      }
    }
  }

  void compare_assignments() {
    std::map<NodeIndex, std::string> nics_b;
    for (const GpuAssignment& given : b_.assignment.gpus) {
      nics_b[given.gpu] = list_or_none(b_.names.list(given.nics));
    }
    for (const GpuAssignment& given : a_.assignment.gpus) {
      const auto found = nics_b.find(in_b(given.gpu));
      if (found == nics_b.end()) continue;
      say(a_.names[given.gpu], "uses", list_or_none(a_.names.list(given.nics)), found->second);
    }
  }

  Side a_;
  Side b_;
  GroupedLines lines_;
  std::size_t not_compared_ = 0;
};

}  // namespace

Difference difference_of(const Graph& a, const Graph& b) { return Comparison(a, b).run(); }

std::string to_json(const Difference& difference) {
  using Json = nlohmann::ordered_json;
  Json lines = Json::array();
  std::istringstream text(difference.text);
  for (std::string line; std::getline(text, line);) lines.push_back(printable(line));
  const Json document = {{"differences", lines}, {"not_compared", difference.not_compared}};
  return document.dump(1) + "\n";
}

}  // namespace beeline::topology
