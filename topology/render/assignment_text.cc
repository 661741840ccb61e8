// SPDX-License-Identifier: Apache-2.0
//
// A text that is the same for several GPUs is printed once.
#include "topology/render/assignment_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "topology/nccl_choice.h"
#include "topology/path.h"
#include "topology/render/display_names.h"
#include "topology/render/name_list.h"

namespace beeline::topology {
namespace {

std::vector<std::string> names_of(const DisplayNames& names, const std::vector<NodeIndex>& nodes) {
  std::vector<std::string> list;
  list.reserve(nodes.size());
  for (const NodeIndex node : nodes) list.push_back(names[node]);
  return list;
}

// "400 Gb/s", "4 x 100 Gb/s", "100 + 200 Gb/s"; "?" if one is unknown.
std::string speed_text(const Graph& graph, const std::vector<NodeIndex>& nics) {
  std::vector<double> speeds;
  for (const NodeIndex nic : nics) {
    double mbps = 0;
    for (const NicPort& port : graph[nic].nic_ports) mbps += port.speed_mbps;
    if (mbps == 0) return "?";
    speeds.push_back(mbps / 1000);
  }
  if (speeds.size() > 1 && std::ranges::count(speeds, speeds.front()) == std::ssize(speeds)) {
    return fmt::format("{} x {:g} Gb/s", speeds.size(), speeds.front());
  }
  return fmt::format("{:g} Gb/s", fmt::join(speeds, " + "));
}

// The bandwidth of the link under load, when it no longer saves power.
std::string link_text(const DisplayNames& names, const LinkState& link) {
  const bool is_idle = link.verdict == LinkVerdict::kIdle;
  std::string text = fmt::format("{:.1f} GB/s: {}, {}", link.gigabytes_per_second(),
                                 names[link.node], to_string(is_idle ? link.possible : link.now));
  if (is_idle) text += ", now saving power";
  return text;
}

// The slowest link of all paths from the GPU to its NICs.
std::string slowest_link(const Graph& graph, const DisplayNames& names,
                         const GpuAssignment& given) {
  std::optional<LinkState> slowest;
  bool is_sure = true;
  for (const NodeIndex nic : given.nics) {
    const Path path = path_between(graph, given.gpu, nic);
    is_sure = is_sure && !path.has_unknown_link;
    if (!path.bottleneck) continue;
    if (!slowest || path.bottleneck->gigabytes_per_second() < slowest->gigabytes_per_second()) {
      slowest = path.bottleneck;
    }
  }
  if (!slowest) return "?";
  return (is_sure ? "" : "at most ") + link_text(names, *slowest);
}

Cells row_of(const Graph& graph, const DisplayNames& names, const GpuAssignment& given) {
  const auto& pci = graph[given.gpu].pci;
  const std::string address = pci ? to_string(*pci) : "no PCI";
  if (given.nics.empty()) return {names[given.gpu], address, "none", "", "", ""};
  return {names[given.gpu],
          address,
          folded(names_of(names, given.nics)),
          speed_text(graph, given.nics),
          to_string(given.distance),
          slowest_link(graph, names, given)};
}

// NCCL may list a NIC several times, for several channels.
bool is_ours(const GpuAssignment& given, const NcclChoice& choice) {
  const std::set<NodeIndex> ours(given.nics.begin(), given.nics.end());
  return ours == std::set<NodeIndex>(choice.nics.begin(), choice.nics.end());
}

std::string choice_text(const DisplayNames& names, const NcclChoice& choice) {
  if (choice.nics.empty()) return "none";
  std::vector<NodeIndex> nics;
  for (const NodeIndex nic : choice.nics) {
    if (std::ranges::find(nics, nic) == nics.end()) nics.push_back(nic);
  }
  std::string text = folded(names_of(names, nics)) + " " + to_string(choice.path_type);
  if (choice.through != kNoNode) text += " through " + names[choice.through];
  return text;
}

// NCCL's own choice: a column if it differs from the assignment, otherwise a line below.
class NcclColumn {
 public:
  NcclColumn(const Graph& graph, const DisplayNames& names, const Assignment& assignment)
      : names_(names), assignment_(assignment), choices_(nccl_choices(graph)) {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      is_same_ = is_same_ && is_ours(assignment.gpus[i], choices_[i]);
    }
  }

  void add_to(std::vector<Cells>& rows) const {
    if (is_same_) return;
    rows[0].emplace_back(nccl_takes());
    auto row = rows.begin();
    for (const std::size_t gpu : names_.gpu_order()) {
      const bool is_same = is_ours(assignment_.gpus[gpu], choices_[gpu]);
      (++row)->push_back(is_same ? "the same" : choice_text(names_, choices_[gpu]));
    }
  }

  std::string line() const {
    return is_same_ ? std::string(kNcclVersion) + " itself makes the same choice\n" : "";
  }

 private:
  static std::string nccl_takes() { return std::string(kNcclVersion) + " itself takes"; }

  const DisplayNames& names_;
  const Assignment& assignment_;
  std::vector<NcclChoice> choices_;
  bool is_same_ = true;
};

bool is_plain(std::string_view name) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return !name.empty() && name.find_first_not_of(kPlain) == std::string_view::npos;
}

}  // namespace

std::string assignment_text(const Graph& graph, const Assignment& assignment, std::size_t width) {
  const DisplayNames names(graph);
  std::string text;
  if (!assignment.gpus.empty()) {
    std::vector<Cells> rows{{"GPU", "address", "NIC", "ports", "distance", "slowest link"}};
    GroupedLines reasons;
    for (const std::size_t gpu : names.gpu_order()) {
      const GpuAssignment& given = assignment.gpus[gpu];
      rows.push_back(row_of(graph, names, given));
      reasons.add(given.reason, names[given.gpu]);
    }
    const NcclColumn nccl(graph, names, assignment);
    nccl.add_to(rows);
    text = aligned(rows, width) + reasons.text() + nccl.line();
  }
  GroupedLines spares;
  for (const SpareNic& spare : assignment.spares) spares.add(spare.reason, names[spare.nic]);
  return text + spares.text(" serves no GPU", " serve no GPU");
}

std::string standby_text(const Graph& graph, const Assignment& assignment) {
  const DisplayNames names(graph);
  std::string text;
  for (const std::size_t gpu : names.gpu_order()) {
    const GpuAssignment& given = assignment.gpus[gpu];
    if (given.standby.empty()) continue;
    text += fmt::format("{}: {}\n", names[given.gpu], folded(names_of(names, given.standby)));
  }
  return text;
}

std::string nccl_ib_hca(const Graph& graph, const Assignment& assignment) {
  std::set<NodeIndex> used;
  for (const GpuAssignment& given : assignment.gpus) {
    used.insert(given.nics.begin(), given.nics.end());
  }
  std::string list;
  for (const NodeIndex nic : graph.nics()) {
    if (!used.contains(nic)) continue;
    const std::string& name = os_name(graph[nic], OsKind::kRdma);
    if (!is_plain(name)) return "";
    list += (list.empty() ? "" : ",") + name;
  }
  return list.empty() ? "" : "export NCCL_IB_HCA=\"=" + list + "\"";
}

}  // namespace beeline::topology
