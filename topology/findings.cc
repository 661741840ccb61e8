// SPDX-License-Identifier: Apache-2.0
//
// One search function for each kind of finding.
#include "topology/findings.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <tuple>

#include "topology/distance.h"
#include "topology/link_state.h"
#include "topology/nccl_choice.h"
#include "topology/nccl_paths.h"

namespace beeline::topology {
namespace {

std::string list_of(const Graph& graph, const std::vector<NodeIndex>& nodes) {
  std::string text;
  for (const NodeIndex node : nodes) text += (text.empty() ? "" : ", ") + label(graph[node]);
  return text;
}

std::string gigabytes(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g GB/s", number);
  return text.data();
}

void find_slow_links(const Graph& graph, const std::vector<NodeIndex>& nics,
                     std::vector<Finding>& found) {
  for (const LinkState& link : links_in_use(graph, nics)) {
    if (!is_slow(link.verdict)) continue;
    found.push_back({.kind = FindingKind::kSlowLink,
                     .severity = Severity::kWarning,
                     .device = link.node,
                     .cause = cause_of(graph, link),
                     .fix = fix_of(graph, link)});
  }
}

void find_hidden_tree(std::vector<Finding>& found) {
  found.push_back({.kind = FindingKind::kHiddenTree,
                   .severity = Severity::kNote,
                   .cause = "no GPU and no NIC is below a PCIe bridge, as is common in virtual "
                            "machines, so NCCL cannot tell which NIC is near which GPU",
                   .fix = "set NCCL_TOPO_FILE to the provider's description of the machine"});
}

void find_far_nics(const std::vector<NcclChoice>& choices, const Graph& graph,
                   std::vector<Finding>& found) {
  for (const NcclChoice& choice : choices) {
    if (choice.nics.empty() || choice.gpu_direct) continue;
    const std::string path = to_string(choice.path_type);
    found.push_back({.kind = FindingKind::kFarNic,
                     .severity = Severity::kNote,
                     .device = choice.gpu,
                     .others = choice.nics,
                     .cause = "NCCL uses " + list_of(graph, choice.nics) + " (" + path +
                              "), too far away for GPUDirect by default, so the data passes "
                              "through host memory",
                     .fix = "set NCCL_NET_GDR_LEVEL=" + path +
                            " for GPUDirect; a NIC below the GPU's PCIe switch would be best"});
  }
}

// Finds NICs that are nearer to a GPU than the NICs that NCCL takes for it. Each such NIC is
// reported once, with all of its GPUs.
void find_slow_near_nics(const std::vector<NcclChoice>& choices, const Graph& graph,
                         const std::vector<NodeIndex>& nics, std::vector<Finding>& found) {
  const NcclPaths paths(graph);
  const std::vector<NcclNet> nets = nccl_nets(graph, nics);
  std::map<NodeIndex, std::tuple<std::vector<NodeIndex>, NcclPath, const NcclChoice*>> passed_over;
  for (const NcclChoice& choice : choices) {
    for (const NcclNet& net : nets) {
      const NcclPath path = paths.between(choice.gpu, net);
      if (choice.nics.empty() || path.type >= choice.path_type || path.type >= NcclPathType::kPhb)
        continue;
      if (std::ranges::find(choice.equals, net.nic) != choice.equals.end()) continue;
      auto& [gpus, nearest, instead] = passed_over[net.nic];
      if (gpus.empty()) std::tie(nearest, instead) = std::pair(path, &choice);
      if (gpus.empty() || gpus.back() != choice.gpu) gpus.push_back(choice.gpu);
    }
  }
  for (auto& [nic, about] : passed_over) {
    auto& [gpus, path, instead] = about;
    std::string cause =
        "near " + list_of(graph, gpus) + " (" + to_string(path.type) + "), but NCCL uses " +
        list_of(graph, instead->nics) + " (" + to_string(instead->path_type) + ") with " +
        gigabytes(instead->gigabytes_per_second) + " instead of " + gigabytes(path.bandwidth);
    found.push_back({.kind = FindingKind::kSlowNearNic,
                     .severity = Severity::kNote,
                     .device = nic,
                     .others = std::move(gpus),
                     .cause = std::move(cause),
                     .fix = "swap the slots of these NICs, unless this one has another purpose"});
  }
}

void find_ports(const Graph& graph, const std::vector<NodeIndex>& nics,
                std::vector<Finding>& found) {
  for (const NodeIndex nic : nics) {
    for (const NicPort& port : graph[nic].nic_ports) {
      const std::string name = "port " + std::to_string(port.number);
      if (port.state == PortState::kDown) {
        found.push_back({.kind = FindingKind::kPortDown,
                         .severity = Severity::kNote,
                         .device = nic,
                         .cause = name + " is down, so NCCL does not use it",
                         .fix = "check the cable and the network switch if it should be up"});
      }
      if (port.speed_mbps > kMaxPortMbps) {
        found.push_back({.kind = FindingKind::kOddSpeed,
                         .severity = Severity::kNote,
                         .device = nic,
                         .cause = "the speed of " + name + " is " +
                                  std::to_string(port.speed_mbps / 1000) +
                                  " Gb/s, more than any port has",
                         .fix = "correct the <net> in the file; its speed is in Mb/s"});
      }
    }
  }
}

}  // namespace

const char* to_string(FindingKind kind) noexcept {
  switch (kind) {
    case FindingKind::kSlowLink: return "slow link";
    case FindingKind::kFarNic: return "far NIC";
    case FindingKind::kSlowNearNic: return "slow near NIC";
    case FindingKind::kHiddenTree: return "hidden tree";
    case FindingKind::kPortDown: return "port down";
    case FindingKind::kOddSpeed: return "odd speed";
  }
  return "?";
}

std::vector<Finding> findings(const Graph& graph, const FindingOptions& options) {
  const std::vector<NodeIndex> nics =
      options.nics.value_or(std::vector<NodeIndex>(graph.nics().begin(), graph.nics().end()));
  std::vector<Finding> found;
  find_slow_links(graph, nics, found);
  if (!graph.gpus().empty() && !nics.empty()) {
    const std::vector<NodeIndex> offered = options.nics.value_or(nics_not_down(graph));
    if (has_hidden_tree(graph)) {
      find_hidden_tree(found);
    } else {
      const std::vector<NcclChoice> choices = nccl_choices(graph, {.nics = offered});
      find_far_nics(choices, graph, found);
      find_slow_near_nics(choices, graph, offered, found);
    }
  }
  find_ports(graph, nics, found);
  std::ranges::stable_sort(found, [](const Finding& a, const Finding& b) {
    return std::pair(b.severity, a.kind) < std::pair(a.severity, b.kind);
  });
  return found;
}

std::string describe(const Finding& finding) {
  return finding.cause + (finding.fix.empty() ? "" : ": " + finding.fix);
}

bool has_warning(const std::vector<Finding>& findings) noexcept {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.severity == Severity::kWarning; });
}

}  // namespace beeline::topology
