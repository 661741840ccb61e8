// SPDX-License-Identifier: Apache-2.0
#include "topology/assignment_reasons.h"

#include <algorithm>

namespace beeline::topology {
namespace {

std::string count_of(std::size_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string chosen_text(const Choice& choice) {
  const std::string distance = std::string(" (") + to_string(choice.distance) + ")";
  const bool is_nearest = choice.nearer.empty();
  const std::string best = is_nearest ? "nearest NIC" : "fastest NIC";
  const std::size_t all = choice.best.size();
  const std::size_t taken = choice.taken.size();
  if (all == 1) return "the " + best + distance;
  if (taken == all) return "the " + count_of(taken, best.c_str()) + distance;
  return std::to_string(taken) + " of " +
         count_of(all, is_nearest ? "equally near NIC" : "equally fast NIC") + distance +
         ", divided among " + count_of(choice.rivals, "GPU");
}

bool contains(const std::vector<std::size_t>& list, std::size_t value) {
  return std::ranges::find(list, value) != list.end();
}

// Empty if a NIC is on the GPU's NUMA node, even if other NICs are better for the GPU.
std::string why_far(const Graph& graph, const std::vector<NicGroup>& groups, int numa) {
  if (numa < 0) return "; the GPU's NUMA node is unknown";
  const auto is_there = [&](const NicGroup& group) { return graph[group.lead].numa == numa; };
  return std::ranges::any_of(groups, is_there) ? ""
                                               : "; no NIC is known to be on the GPU's NUMA node";
}

}  // namespace

std::string reason_for(const Graph& graph, const std::vector<NicGroup>& groups, NodeIndex gpu,
                       const Choice& choice) {
  if (choice.taken.empty()) return "there is no RDMA NIC";
  std::string text = chosen_text(choice);
  if (choice.most_used > 1) {
    const char* const served_by =
        choice.taken.size() == 1 ? "; it serves " : "; the busiest serves ";
    text += served_by + count_of(choice.most_used, "GPU");
  }
  for (const std::size_t group : choice.nearer) {
    text += "; not " + label(graph[groups[group].lead]) + ", which is nearer but slower";
  }
  for (const std::size_t group : choice.as_near) {
    text += "; not " + label(graph[groups[group].lead]) + ", which is as near but slower";
  }
  for (const std::size_t group : choice.taken) {
    const std::string others = describe(graph, groups[group]);
    if (!others.empty()) text += "; " + label(graph[groups[group].lead]) + " " + others;
  }
  if (choice.distance == Distance::kSys) text += why_far(graph, groups, graph[gpu].numa);
  return text;
}

std::string reason_spare(std::size_t group, const std::vector<Choice>& choices) {
  if (choices.empty()) return "there is no GPU";
  const auto is_over = [group](const Choice& choice) { return contains(choice.best, group); };
  if (std::ranges::any_of(choices, is_over))
    return "left over: there are too few for one more per GPU";
  const auto is_passed = [group](const Choice& choice) { return contains(choice.nearer, group); };
  if (std::ranges::any_of(choices, is_passed)) return "slower than NICs that are farther away";
  const auto is_slow = [group](const Choice& choice) { return contains(choice.as_near, group); };
  if (std::ranges::any_of(choices, is_slow)) return "slower than other NICs that are equally near";
  return "every GPU has a nearer NIC";
}

}  // namespace beeline::topology
