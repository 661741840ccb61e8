// SPDX-License-Identifier: Apache-2.0
#include "topology/render/display_names.h"

#include <algorithm>
#include <numeric>

namespace beeline::topology {

namespace {

// CUDA's or HIP's, where each is known and there once; else in the order of Graph::gpus().
std::vector<int> numbers_of(const Graph& graph) {
  std::vector<int> numbers;
  for (const NodeIndex gpu : graph.gpus()) numbers.push_back(graph[gpu].gpu.number);
  std::vector<int> sorted = numbers;
  std::ranges::sort(sorted);
  const bool is_once = std::ranges::adjacent_find(sorted) == sorted.end();
  if (!is_once || (!sorted.empty() && sorted.front() < 0)) {
    std::iota(numbers.begin(), numbers.end(), 0);
  }
  return numbers;
}

}  // namespace

DisplayNames::DisplayNames(const Graph& graph) {
  names_.reserve(graph.size());
  for (const Node& node : graph.nodes()) names_.push_back(label(node));
  const std::vector<int> numbers = numbers_of(graph);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    names_[graph.gpus()[i]] = "GPU" + std::to_string(numbers[i]);
  }
  gpu_order_.resize(numbers.size());
  std::iota(gpu_order_.begin(), gpu_order_.end(), std::size_t{0});
  std::ranges::sort(gpu_order_, {}, [&numbers](std::size_t i) { return numbers[i]; });
  for (std::size_t i = 0; i < graph.nics().size(); ++i) {
    const Node& nic = graph[graph.nics()[i]];
    if (os_name(nic, OsKind::kRdma).empty()) names_[graph.nics()[i]] = "NIC" + std::to_string(i);
  }
}

std::string DisplayNames::list(const std::vector<NodeIndex>& nodes) const {
  std::string text;
  for (const NodeIndex node : nodes) text += (text.empty() ? "" : ", ") + names_[node];
  return text;
}

std::vector<NodeIndex> shown_devices(const Graph& graph, const DisplayNames& names) {
  std::vector<NodeIndex> devices;
  for (const std::size_t gpu : names.gpu_order()) devices.push_back(graph.gpus()[gpu]);
  devices.insert(devices.end(), graph.nics().begin(), graph.nics().end());
  return devices;
}

}  // namespace beeline::topology
