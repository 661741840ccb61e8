// SPDX-License-Identifier: Apache-2.0
//
// Choosing, sharing out, and what stands by.
#include "topology/assignment.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "topology/assignment_words.h"
#include "topology/nic_unit.h"
#include "topology/sharing.h"

namespace beeline::topology {
namespace {

std::uint64_t fastest_of(const std::vector<NicUnit>& units, const std::vector<std::size_t>& among) {
  std::uint64_t fastest = 0;
  for (const std::size_t unit : among) {
    if (units[unit].speed_mbps == 0) return 0;  // unknown: nobody is called slow
    fastest = std::max(fastest, units[unit].speed_mbps);
  }
  return fastest;
}

// One run of assign().
// Lifecycle: a local variable. Threads: one.
class Assigner {
 public:
  Assigner(const Graph& graph, const AssignOptions& options)
      : graph_(graph),
        max_per_gpu_(options.max_nics_per_gpu),
        nics_(options.nics.value_or(
            std::vector<NodeIndex>(graph.nics().begin(), graph.nics().end()))),
        places_(graph),
        units_(nic_units(graph, nics_)),
        uses_(units_.size()) {}

  Assignment run() {
    for (const NodeIndex gpu : graph_.gpus()) choices_.push_back(choose(gpu));
    share();
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
  Choice choose(NodeIndex gpu) const {
    Choice choice;
    int nearest = -1;
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      const int rank = places_.rank(gpu, units_[unit].lead);
      if (nearest >= 0 && rank > nearest) continue;
      if (rank != nearest) choice.nearest.clear();
      nearest = rank;
      choice.nearest.push_back(unit);
    }
    if (choice.nearest.empty()) return choice;
    choice.distance = places_.between(gpu, units_[choice.nearest.front()].lead);
    const std::uint64_t fastest = fastest_of(units_, choice.nearest);
    const auto is_fast = [&](std::size_t unit) { return units_[unit].speed_mbps * 2 >= fastest; };
    const auto slow = std::stable_partition(choice.nearest.begin(), choice.nearest.end(), is_fast);
    choice.too_slow.assign(slow, choice.nearest.end());
    choice.nearest.erase(slow, choice.nearest.end());
    return choice;
  }

  void share() {
    Claims claims;
    claims.max_per_gpu = max_per_gpu_;
    std::map<std::vector<std::size_t>, std::size_t> rivals;
    for (const Choice& choice : choices_) {
      claims.choices.push_back(choice.nearest);
      ++rivals[choice.nearest];
    }
    std::map<NodeIndex, std::size_t> adapters;
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      claims.adapters.push_back(adapters.try_emplace(units_[unit].adapter, unit).first->second);
    }
    std::vector<std::vector<std::size_t>> shares = share_out(claims);
    for (const auto& share : shares) {
      for (const std::size_t unit : share) ++uses_[unit];
    }
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      Choice& choice = choices_[i];
      choice.taken = std::move(shares[i]);
      choice.rivals = rivals[choice.nearest];
      for (const std::size_t unit : choice.taken) {
        choice.most_used = std::max(choice.most_used, uses_[unit]);
      }
    }
  }

  // Near ones first; then no slow ones, another adapter than the one that may just have failed,
  // those with less to do. Equals follow the GPU's own NIC round the table, and GPUs that share a
  // NIC start at different places: else all would run to the same one.
  std::vector<std::size_t> standby(NodeIndex gpu, const Choice& choice, std::size_t sharer) const {
    using Key = std::tuple<int, bool, bool, std::size_t, std::size_t, std::size_t>;
    const std::size_t count = units_.size();
    const std::size_t start = (choice.taken.front() + 1 + sharer) % count;
    std::vector<Key> keys;
    keys.reserve(count);
    for (std::size_t unit = 0; unit < count; ++unit) {
      if (std::ranges::find(choice.taken, unit) != choice.taken.end()) continue;
      const NicUnit& candidate = units_[unit];
      const bool same_adapter = std::ranges::any_of(
          choice.taken, [&](std::size_t own) { return units_[own].adapter == candidate.adapter; });
      const bool slow = candidate.speed_mbps != 0 &&
                        candidate.speed_mbps * 2 < units_[choice.taken.front()].speed_mbps;
      keys.emplace_back(places_.rank(gpu, candidate.lead), slow, same_adapter, uses_[unit],
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
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      for (const NodeIndex member : units_[unit].members) {
        reasons[member] = "the same wire as " + label(graph_[units_[unit].lead]);
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
  std::vector<NodeIndex> nics_;
  Places places_;
  std::vector<NicUnit> units_;
  std::vector<std::size_t> uses_;  // by unit: GPUs
  std::vector<Choice> choices_;    // by GPU
};

}  // namespace

Assignment assign(const Graph& graph, const AssignOptions& options) {
  return Assigner(graph, options).run();
}

}  // namespace beeline::topology
