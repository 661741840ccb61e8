// SPDX-License-Identifier: Apache-2.0
#include "topology/render/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "topology/distance.h"
#include "topology/render/display_names.h"
#include "topology/render/gpu_links.h"

namespace beeline::topology {
namespace {

std::string legend(bool with_same) {
  std::string text = with_same ? "\n  X     the same device\n" : "\n";
  for (const Distance distance :
       {Distance::kPix, Distance::kPxb, Distance::kPhb, Distance::kNode, Distance::kSys}) {
    text += fmt::format("  {:<4}  {}\n", to_string(distance), meaning(distance));
  }
  return text;
}

std::string or_unknown(const std::string& text) { return text.empty() ? "?" : text; }

constexpr const char* kNothing = "no GPU and no RDMA NIC\n";

}  // namespace

std::string matrix_text(const Graph& graph, std::size_t width) {
  const DisplayNames names(graph);
  const std::vector<NodeIndex> devices = shown_devices(graph, names);
  if (devices.empty()) return kNothing;

  const Distances distances(graph);
  std::string gpu_links;  // that occur
  const auto word_of = [&](NodeIndex a, NodeIndex b) -> std::string {
    if (a == b) return "X";
    std::string link = gpu_link_name(graph[a], graph[b]);
    if (link.empty()) return to_string(distances.between(a, b));
    gpu_links = link;
    return link;
  };
  std::vector<Cells> rows(1);
  rows[0].emplace_back();
  for (const NodeIndex device : devices) rows[0].push_back(names[device]);
  rows[0].insert(rows[0].end(), {"NUMA", "CPUs"});
  for (const NodeIndex device : devices) {
    Cells& row = rows.emplace_back();
    row.push_back(names[device]);
    for (const NodeIndex other : devices) row.push_back(word_of(device, other));
    const Node& node = graph[device];
    row.push_back(node.numa < 0 ? "?" : std::to_string(node.numa));
    row.push_back(or_unknown(node.cpus));
  }
  const bool is_nvlink = gpu_links.starts_with("NV");
  const char* links = is_nvlink ? "  NV#   through # NVLinks\n" : "  XGMI  through xGMI links\n";
  return aligned(rows, width) + legend(true) + (gpu_links.empty() ? "" : links);
}

std::string gpu_nic_matrix_text(const Graph& graph, const Assignment& assignment,
                                std::size_t width) {
  if (graph.gpus().empty() && graph.nics().empty()) return kNothing;
  const DisplayNames names(graph);
  const Distances distances(graph);
  std::vector<Cells> rows(1);
  rows[0].emplace_back();
  for (const std::size_t gpu : names.gpu_order()) rows[0].push_back(names[graph.gpus()[gpu]]);
  for (const NodeIndex nic : graph.nics()) {
    Cells& row = rows.emplace_back();
    row.push_back(names[nic]);
    for (const std::size_t gpu : names.gpu_order()) {
      const GpuAssignment& given = assignment.gpus[gpu];
      const bool is_used = std::ranges::find(given.nics, nic) != given.nics.end();
      row.push_back(std::string(to_string(distances.between(given.gpu, nic))) +
                    (is_used ? "*" : ""));
    }
  }
  return aligned(rows, width) + "\n  *     the GPU uses this NIC" + legend(false);
}

}  // namespace beeline::topology
