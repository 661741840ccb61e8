// SPDX-License-Identifier: Apache-2.0
//
// Choosing, sharing out, and what stands by.
#include "topology/assignment.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "topology/assignment_words.h"
#include "topology/nccl_choice.h"
#include "topology/nccl_ways.h"
#include "topology/nic_unit.h"
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
        places_(graph),
        ways_(graph),
        units_(nic_units(graph, nics_)),
        best_nets_(best_net_of_each()),
        uses_(units_.size()) {}

  Assignment run() {
    const std::vector<NcclChoice> nccl = nccl_choices(graph_, {.nics = all_leads()});
    for (const NcclChoice& theirs : nccl) choices_.push_back(choose(theirs));
    share(nccl);
    Assignment result;
    std::vector<std::size_t> sharers(units_.size());
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
      given.reason = reason_for(graph_, units_, gpu, choice);
    }
    add_spares(result);
    return result;
  }

 private:
  using Teams = std::map<std::vector<std::size_t>, std::vector<std::size_t>>;  // GPUs by choice
  using Shares = std::vector<std::vector<std::size_t>>;                        // by GPU: units

  // The fastest port of each unit, by NCCL's numbers.
  std::vector<NcclNet> best_net_of_each() {
    for (std::size_t unit = 0; unit < units_.size(); ++unit) unit_of_[units_[unit].lead] = unit;
    std::vector<NcclNet> best(units_.size());
    for (const NcclNet& net : nccl_nets(graph_, all_leads())) {
      NcclNet& known = best[unit_of_.at(net.nic)];
      if (net.bandwidth > known.bandwidth) known = net;
    }
    return best;
  }

  std::vector<NodeIndex> all_leads() const {
    std::vector<NodeIndex> nodes;
    for (const NicUnit& unit : units_) nodes.push_back(unit.lead);
    return nodes;
  }

  Choice choose(const NcclChoice& theirs) const {
    Choice choice;
    choice.best = units_of(theirs.equals);
    std::ranges::sort(choice.best);
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      if (std::ranges::binary_search(choice.best, unit)) continue;
      const NcclPath path = ways_.between(theirs.gpu, best_nets_[unit]).path;
      if (path < theirs.path) choice.nearer.push_back(unit);
      if (path == theirs.path) choice.as_near.push_back(unit);
    }
    return choice;
  }

  std::vector<std::size_t> units_of(const std::vector<NodeIndex>& nics) const {
    std::vector<std::size_t> units;
    units.reserve(nics.size());
    for (const NodeIndex nic : nics) units.push_back(unit_of_.at(nic));
    return units;
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
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      claims.adapters.push_back(adapters.try_emplace(units_[unit].adapter, unit).first->second);
    }
    Shares shares = share_out(claims);
    for (const auto& [best, team] : teams) deal_as_nccl(team, nccl, shares);
    for (const auto& share : shares) {
      for (const std::size_t unit : share) ++uses_[unit];
    }
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      Choice& choice = choices_[i];
      choice.taken = std::move(shares[i]);
      choice.rivals = teams[choice.best].size();
      choice.distance = choice.taken.empty() ? Distance::kSys : Distance::kLoc;
      for (const std::size_t unit : choice.taken) {
        choice.most_used = std::max(choice.most_used, uses_[unit]);
        const Distance distance = places_.between(graph_.gpus()[i], units_[unit].lead);
        choice.distance = std::max(choice.distance, distance);
      }
    }
  }

  // If NCCL also gives each NIC to equally many GPUs of the team, each GPU gets the NICs that NCCL
  // gives it.
  void deal_as_nccl(const std::vector<std::size_t>& team, const std::vector<NcclChoice>& nccl,
                    Shares& shares) const {
    std::vector<std::size_t> ours;
    std::vector<std::size_t> theirs;
    for (const std::size_t gpu : team) {
      if (nccl[gpu].nics.size() != shares[gpu].size()) return;
      ours.insert(ours.end(), shares[gpu].begin(), shares[gpu].end());
      const std::vector<std::size_t> units = units_of(nccl[gpu].nics);
      theirs.insert(theirs.end(), units.begin(), units.end());
    }
    std::ranges::sort(ours);
    std::ranges::sort(theirs);
    if (ours != theirs) return;
    for (const std::size_t gpu : team) {
      shares[gpu] = units_of(nccl[gpu].nics);
      std::ranges::sort(shares[gpu]);
    }
  }

  // Fast NICs come first, as in NCCL, and near ones among these; then NICs on another adapter than
  // the one that may have failed, and NICs with fewer GPUs. Equal NICs follow the GPU's own NIC in
  // the order of the list, and GPUs that share a NIC start at different places. Otherwise all would
  // choose the same standby NIC.
  std::vector<std::size_t> standby(NodeIndex gpu, const Choice& choice, std::size_t sharer) const {
    using Key = std::tuple<float, int, bool, std::size_t, std::size_t, std::size_t>;
    const std::size_t count = units_.size();
    const std::size_t start = (choice.taken.front() + 1 + sharer) % count;
    std::vector<Key> keys;
    keys.reserve(count);
    for (std::size_t unit = 0; unit < count; ++unit) {
      if (std::ranges::find(choice.taken, unit) != choice.taken.end()) continue;
      const NicUnit& candidate = units_[unit];
      const bool same_adapter = std::ranges::any_of(
          choice.taken, [&](std::size_t own) { return units_[own].adapter == candidate.adapter; });
      keys.emplace_back(-ways_.between(gpu, best_nets_[unit]).bandwidth,
                        places_.rank(gpu, candidate.lead), same_adapter, uses_[unit],
                        (unit + count - start) % count, unit);
    }
    std::ranges::sort(keys);
    std::vector<std::size_t> order;
    order.reserve(keys.size());
    for (const Key& key : keys) order.push_back(std::get<5>(key));
    return order;
  }

  std::vector<NodeIndex> leads(const std::vector<std::size_t>& units) const {
    std::vector<NodeIndex> nodes;
    nodes.reserve(units.size());
    for (const std::size_t unit : units) nodes.push_back(units_[unit].lead);
    return nodes;
  }

  void add_spares(Assignment& result) const {
    std::map<NodeIndex, std::string> reasons;
    for (const NodeIndex nic : graph_.nics()) {
      if (!nics_are_given_) reasons[nic] = "its ports are down";
    }
    for (const NodeIndex nic : nics_) reasons.erase(nic);
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      for (const NodeIndex member : units_[unit].members) {
        reasons[member] = "same ports or bond as " + label(graph_[units_[unit].lead]);
      }
      reasons.erase(units_[unit].lead);
      if (uses_[unit] == 0) reasons[units_[unit].lead] = reason_spare(unit, choices_);
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
  Places places_;
  NcclWays ways_;
  std::vector<NicUnit> units_;
  std::map<NodeIndex, std::size_t> unit_of_;  // by lead
  std::vector<NcclNet> best_nets_;            // by unit
  std::vector<std::size_t> uses_;             // by unit: GPUs
  std::vector<Choice> choices_;               // by GPU
};

}  // namespace

Assignment assign(const Graph& graph, const AssignOptions& options) {
  return Assigner(graph, options).run();
}

}  // namespace beeline::topology
