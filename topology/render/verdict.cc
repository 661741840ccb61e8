// SPDX-License-Identifier: Apache-2.0
#include "topology/render/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "topology/distance.h"
#include "topology/link_state.h"
#include "topology/nccl_choice.h"
#include "topology/render/display_names.h"
#include "topology/render/name_list.h"

namespace beeline::topology {
namespace {

std::string sharing(const Assignment& assignment) {
  std::map<NodeIndex, std::size_t> users;
  for (const GpuAssignment& given : assignment.gpus) {
    for (const NodeIndex nic : given.nics) ++users[nic];
  }
  const auto has_own = [&users](const GpuAssignment& given) {
    return std::ranges::any_of(given.nics, [&](NodeIndex nic) { return users[nic] == 1; });
  };
  const std::size_t all = assignment.gpus.size();
  const auto own = static_cast<std::size_t>(std::ranges::count_if(assignment.gpus, has_own));
  if (all == 1) return "the GPU has a NIC of its own";
  std::string text = fmt::format("{} of {} GPUs have a NIC of their own", own, all);
  if (own == all) return text;
  std::size_t busiest = 0;
  for (const auto& [nic, count] : users) busiest = std::max(busiest, count);
  return text + fmt::format(", up to {} share one", busiest);
}

// Whether GPUDirect works with the NICs that NCCL itself takes.
std::string gpu_direct(const Graph& graph) {
  if (has_hidden_tree(graph)) return "it is unknown which NIC is near which GPU";
  const DisplayNames names(graph);
  std::vector<std::string> far;
  NcclPathType farthest = NcclPathType::kPhb;
  const std::vector<NcclChoice> choices = nccl_choices(graph);
  for (const std::size_t gpu : names.gpu_order()) {
    const NcclChoice& choice = choices[gpu];
    if (choice.nics.empty() || choice.gpu_direct) continue;
    far.push_back(names[choice.gpu]);
    farthest = std::max(farthest, choice.path_type);
  }
  if (far.empty()) return "GPUDirect is possible without NCCL_NET_GDR_LEVEL";
  const bool is_all = far.size() == graph.gpus().size();
  return fmt::format("GPUDirect {}needs NCCL_NET_GDR_LEVEL={}",
                     is_all ? "" : fmt::format("for {} ", folded(far)), to_string(farthest));
}

std::string links(const LinkCount& count) {
  if (count.slow > 0) return count_of(count.slow, "slow link") + ", see below";
  if (!count.can_be_judged()) return "it is unknown whether a link is slow";
  if (count.unknown == 0) return "no link is slow";
  return fmt::format("no slow link among the {} of {} that can be judged",
                     count.all - count.unknown, count.all);
}

}  // namespace

std::string verdict_text(const Graph& graph, const Assignment& assignment) {
  std::string text;
  if (graph.gpus().empty() && graph.nics().empty()) return "no GPU and no RDMA NIC is visible";
  if (graph.gpus().empty()) {
    text = "there is no GPU (--gpu ADDRESS treats a PCI device as one)";
  } else if (graph.nics().empty()) {
    text = "there is no RDMA NIC for any GPU";
  } else {
    text = sharing(assignment) + "; " + gpu_direct(graph);
  }
  return text + "; " + links(count_links(graph));
}

LinkCount count_links(const Graph& graph) {
  LinkCount count;
  for (const LinkState& link : links_in_use(graph)) {
    ++count.all;
    if (is_slow(link.verdict)) ++count.slow;
    if (link.verdict == LinkVerdict::kUnknown) ++count.unknown;
  }
  return count;
}

}  // namespace beeline::topology
