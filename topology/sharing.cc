// SPDX-License-Identifier: Apache-2.0
//
// GPUs with the same choice form a team. Teams with the smallest choice are first, since others
// have more alternatives. Every team takes one NIC for each of its GPUs, the least used first. Then
// teams that have unused NICs left take more.
#include "topology/sharing.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace beeline::topology {
namespace {

struct Team {
  std::vector<std::size_t> gpus = {};  // in order
  std::vector<std::size_t> nics = {};  // in order
  std::vector<std::size_t> taken =
      {};  // the same number for each GPU; a NIC may be in it repeatedly
};

std::vector<Team> teams_of(const Claims& claims) {
  std::map<std::vector<std::size_t>, Team> by_choice;
  for (std::size_t gpu = 0; gpu < claims.choices.size(); ++gpu) {
    const auto& choice = claims.choices[gpu];
    if (!choice.empty()) by_choice[choice].gpus.push_back(gpu);
  }
  std::vector<Team> teams;
  for (auto& [choice, team] : by_choice) {
    team.nics = choice;
    teams.push_back(std::move(team));
  }
  std::ranges::stable_sort(teams, {}, [](const Team& team) { return team.nics.size(); });
  return teams;
}

class NicSharer {
 public:
  explicit NicSharer(const Claims& claims)
      : claims_(claims),
        uses_(claims.adapters.size()),
        adapter_uses_(claims.adapters.size()),
        claimants_(claims.adapters.size()) {
    for (const auto& choice : claims.choices) {
      for (const std::size_t nic : choice) ++claimants_[nic];
    }
  }

  void take_one_each(Team& team) {
    for (std::size_t i = 0; i < team.gpus.size(); ++i) take(team, least_used(team));
  }

  void take_free_nics(Team& team) {
    std::size_t rounds = free_of(team) / team.gpus.size();
    if (claims_.max_per_gpu != 0) rounds = std::min(rounds, claims_.max_per_gpu - 1);
    for (; rounds > 0; --rounds) take_one_each(team);
  }

 private:
  // Of equally used NICs, the one that the fewest GPUs may have, and then one on an unused adapter.
  std::size_t least_used(const Team& team) const {
    return *std::ranges::min_element(team.nics, {}, [this](std::size_t nic) {
      return std::tuple(uses_[nic], claimants_[nic], adapter_uses_[claims_.adapters[nic]]);
    });
  }

  void take(Team& team, std::size_t nic) {
    ++uses_[nic];
    ++adapter_uses_[claims_.adapters[nic]];
    team.taken.push_back(nic);
  }

  std::size_t free_of(const Team& team) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(team.nics, [this](std::size_t nic) { return uses_[nic] == 0; }));
  }

  const Claims& claims_;
  std::vector<std::size_t> uses_;          // by NIC
  std::vector<std::size_t> adapter_uses_;  // by first NIC of the adapter
  std::vector<std::size_t> claimants_;     // GPUs that may have the NIC
};

}  // namespace

std::vector<std::vector<std::size_t>> share_out(const Claims& claims) {
  std::vector<Team> teams = teams_of(claims);
  NicSharer sharer(claims);
  for (Team& team : teams) sharer.take_one_each(team);
  for (Team& team : teams) sharer.take_free_nics(team);

  std::vector<std::vector<std::size_t>> shares(claims.choices.size());
  for (Team& team : teams) {
    // Sorted, so that neighboring GPUs get neighboring NICs and the ports of an adapter stay
    // together.
    std::ranges::sort(team.taken);
    const auto each = static_cast<std::ptrdiff_t>(team.taken.size() / team.gpus.size());
    auto next = team.taken.begin();
    for (const std::size_t gpu : team.gpus) {
      shares[gpu].assign(next, next + each);
      next += each;
    }
  }
  return shares;
}

}  // namespace beeline::topology
