// SPDX-License-Identifier: Apache-2.0
#include "topology/assignment.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "topology/assignment_reasons.h"
#include "topology/nccl_choice.h"
#include "topology/nccl_paths.h"
#include "topology/nic_group.h"
#include "topology/sharing.h"

namespace beeline::topology {
namespace {

// One run of assign().
// Lifecycle: a local variable. Threads: one.
class Assigner {
 public:
  Assigner(const Graph& graph, const AssignOptions& options)
      : graph_(graph),
        max_per_gpu_(options.max_nics_per_gpu),
        nics_are_given_(options.nics.has_value()),
        nics_(options.nics.value_or(nics_not_down(graph))),
        distances_(graph),
        paths_(graph),
        groups_(nic_groups(graph, nics_)),
        best_nets_(best_net_of_each()),
        uses_(groups_.size()) {}

  Assignment run() {
    const std::vector<NcclChoice> nccl = nccl_choices(graph_, {.nics = all_leads()});
    for (const NcclChoice& theirs : nccl) choices_.push_back(choose(theirs));
    share(nccl);
    Assignment result;
    std::vector<std::size_t> sharers(groups_.size());
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      const NodeIndex gpu = graph_.gpus()[i];
      const Choice& choice = choices_[i];
      GpuAssignment& given = result.gpus.emplace_back();
      given.gpu = gpu;
      given.distance = choice.distance;
      given.nics = leads(choice.taken);
      if (!choice.taken.empty()) {
        given.standby = leads(standby(gpu, choice, sharers[choice.taken.front()]++));
      }
      given.reason = reason_for(graph_, groups_, gpu, choice);
    }
    add_spares(result);
    return result;
  }

 private:
  using Teams = std::map<std::vector<std::size_t>, std::vector<std::size_t>>;  // GPUs by choice
  using Shares = std::vector<std::vector<std::size_t>>;                        // by GPU: groups

  // The fastest port of each group, according to NCCL's bandwidths.
  std::vector<NcclNet> best_net_of_each() {
    for (std::size_t group = 0; group < groups_.size(); ++group)
      group_of_[groups_[group].lead] = group;
    std::vector<NcclNet> best(groups_.size());
    for (const NcclNet& net : nccl_nets(graph_, all_leads())) {
      NcclNet& known = best[group_of_.at(net.nic)];
      if (net.bandwidth > known.bandwidth) known = net;
    }
    return best;
  }

  std::vector<NodeIndex> all_leads() const {
    std::vector<NodeIndex> nodes;
    for (const NicGroup& group : groups_) nodes.push_back(group.lead);
    return nodes;
  }

  Choice choose(const NcclChoice& theirs) const {
    Choice choice;
    choice.best = groups_of(theirs.equals);
    std::ranges::sort(choice.best);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (std::ranges::binary_search(choice.best, group)) continue;
      const NcclPathType path = paths_.between(theirs.gpu, best_nets_[group]).type;
      if (path < theirs.path_type) choice.nearer.push_back(group);
      if (path == theirs.path_type) choice.as_near.push_back(group);
    }
    return choice;
  }

  std::vector<std::size_t> groups_of(const std::vector<NodeIndex>& nics) const {
    std::vector<std::size_t> groups;
    groups.reserve(nics.size());
    for (const NodeIndex nic : nics) groups.push_back(group_of_.at(nic));
    return groups;
  }

  void share(const std::vector<NcclChoice>& nccl) {
    Claims claims;
    claims.max_per_gpu = max_per_gpu_;
    Teams teams;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      claims.choices.push_back(choices_[i].best);
      teams[choices_[i].best].push_back(i);
    }
    std::map<NodeIndex, std::size_t> adapters;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      claims.adapters.push_back(adapters.try_emplace(groups_[group].adapter, group).first->second);
    }
    Shares shares = share_out(claims);
    for (const auto& [best, team] : teams) share_as_nccl(team, nccl, shares);
    for (const auto& share : shares) {
      for (const std::size_t group : share) ++uses_[group];
    }
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      Choice& choice = choices_[i];
      choice.taken = std::move(shares[i]);
      choice.rivals = teams[choice.best].size();
      choice.distance = choice.taken.empty() ? Distance::kSys : Distance::kLoc;
      for (const std::size_t group : choice.taken) {
        choice.most_used = std::max(choice.most_used, uses_[group]);
        const Distance distance = distances_.between(graph_.gpus()[i], groups_[group].lead);
        choice.distance = std::max(choice.distance, distance);
      }
    }
  }

  // If NCCL also gives each NIC to equally many GPUs of the team, each GPU gets the NICs that NCCL
  // gives it.
  void share_as_nccl(const std::vector<std::size_t>& team, const std::vector<NcclChoice>& nccl,
                     Shares& shares) const {
    std::vector<std::size_t> ours;
    std::vector<std::size_t> theirs;
    for (const std::size_t gpu : team) {
      if (nccl[gpu].nics.size() != shares[gpu].size()) return;
      ours.insert(ours.end(), shares[gpu].begin(), shares[gpu].end());
      const std::vector<std::size_t> groups = groups_of(nccl[gpu].nics);
      theirs.insert(theirs.end(), groups.begin(), groups.end());
    }
    std::ranges::sort(ours);
    std::ranges::sort(theirs);
    if (ours != theirs) return;
    for (const std::size_t gpu : team) {
      shares[gpu] = groups_of(nccl[gpu].nics);
      std::ranges::sort(shares[gpu]);
    }
  }

  // Fast NICs come first, as in NCCL, and near ones among these; then NICs on another adapter than
  // the one that may have failed, and NICs with fewer GPUs. Equal NICs follow the GPU's own NIC in
  // the order of the list, and GPUs that share a NIC start at different positions. Otherwise all
  // would choose the same standby NIC.
  std::vector<std::size_t> standby(NodeIndex gpu, const Choice& choice, std::size_t sharer) const {
    using Key = std::tuple<float, int, bool, std::size_t, std::size_t, std::size_t>;
    const std::size_t count = groups_.size();
    const std::size_t start = (choice.taken.front() + 1 + sharer) % count;
    std::vector<Key> keys;
    keys.reserve(count);
    for (std::size_t group = 0; group < count; ++group) {
      if (std::ranges::find(choice.taken, group) != choice.taken.end()) continue;
      const NicGroup& candidate = groups_[group];
      const bool same_adapter = std::ranges::any_of(
          choice.taken, [&](std::size_t own) { return groups_[own].adapter == candidate.adapter; });
      keys.emplace_back(-paths_.between(gpu, best_nets_[group]).bandwidth,
                        distances_.rank(gpu, candidate.lead), same_adapter, uses_[group],
                        (group + count - start) % count, group);
    }
    std::ranges::sort(keys);
    std::vector<std::size_t> order;
    order.reserve(keys.size());
    for (const Key& key : keys) order.push_back(std::get<5>(key));
    return order;
  }

  std::vector<NodeIndex> leads(const std::vector<std::size_t>& groups) const {
    std::vector<NodeIndex> nodes;
    nodes.reserve(groups.size());
    for (const std::size_t group : groups) nodes.push_back(groups_[group].lead);
    return nodes;
  }

  void add_spares(Assignment& result) const {
    std::map<NodeIndex, std::string> reasons;
    for (const NodeIndex nic : graph_.nics()) {
      if (!nics_are_given_) reasons[nic] = "its ports are down";
    }
    for (const NodeIndex nic : nics_) reasons.erase(nic);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      for (const NodeIndex member : groups_[group].members) {
        reasons[member] = "same ports or bond as " + label(graph_[groups_[group].lead]);
      }
      reasons.erase(groups_[group].lead);
      if (uses_[group] == 0) reasons[groups_[group].lead] = reason_spare(group, choices_);
    }
    for (const NodeIndex nic : graph_.nics()) {
      if (const auto found = reasons.find(nic); found != reasons.end()) {
        result.spares.push_back({.nic = nic, .reason = found->second});
      }
    }
  }

  const Graph& graph_;
  std::size_t max_per_gpu_;
  bool nics_are_given_;
  std::vector<NodeIndex> nics_;
  Distances distances_;
  NcclPaths paths_;
  std::vector<NicGroup> groups_;
  std::map<NodeIndex, std::size_t> group_of_;  // by lead
  std::vector<NcclNet> best_nets_;             // by group
  std::vector<std::size_t> uses_;              // by group: GPUs
  std::vector<Choice> choices_;                // by GPU
};

}  // namespace

Assignment assign(const Graph& graph, const AssignOptions& options) {
  return Assigner(graph, options).run();
}

}  // namespace beeline::topology
