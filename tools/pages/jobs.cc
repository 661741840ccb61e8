// SPDX-License-Identifier: Apache-2.0
#include "tools/pages/jobs.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace beeline::pages {
namespace {

// Sets of processes, each of which has a first one.
class Groups {
 public:
  explicit Groups(std::size_t count) : before_(count) {
    std::iota(before_.begin(), before_.end(), std::size_t{0});
  }
  std::size_t first_of(std::size_t one) {
    while (before_[one] != one) one = before_[one] = before_[before_[one]];
    return one;
  }
  void unite(std::size_t a, std::size_t b) {
    const std::size_t of_a = first_of(a);
    const std::size_t of_b = first_of(b);
    before_[std::max(of_a, of_b)] = std::min(of_a, of_b);
  }

 private:
  std::vector<std::size_t> before_;
};

using Place = std::pair<std::string, std::int64_t>;  // host and pid

// A rank that has no connection yet, and says no name, belongs to the first job that lacks it.
void place_unconnected(std::span<const Process> processes, Groups& groups) {
  struct Ranks {
    std::optional<std::uint32_t> count;  // of the job
    std::set<std::uint32_t> here;
  };
  std::map<std::size_t, Ranks> known;  // of groups
  std::map<std::size_t, std::size_t> sizes;
  for (std::size_t p = 0; p < processes.size(); ++p) ++sizes[groups.first_of(p)];
  const auto is_unconnected = [&](std::size_t p) {
    return processes[p].job.empty() && processes[p].rank && sizes[groups.first_of(p)] == 1;
  };
  std::vector<std::size_t> left;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    if (is_unconnected(p)) {
      left.push_back(p);
      continue;
    }
    Ranks& ranks = known[groups.first_of(p)];
    if (!processes[p].job.empty()) continue;  // it has a name, and who belongs to it says so
    ranks.count = processes[p].ranks;
    if (processes[p].rank) ranks.here.insert(*processes[p].rank);
  }
  for (const std::size_t p : left) {
    const auto lacks_it = [&](const auto& group) {
      return group.second.count == processes[p].ranks &&
             !group.second.here.contains(*processes[p].rank);
    };
    const auto job = std::ranges::find_if(known, lacks_it);
    const std::size_t first = job != known.end() ? job->first : p;
    groups.unite(first, p);
    Ranks ranks = job != known.end() ? job->second : Ranks{.count = processes[p].ranks, .here = {}};
    ranks.here.insert(*processes[p].rank);
    if (job != known.end()) known.erase(job);
    known[groups.first_of(p)] = std::move(ranks);  // it may be the first of the group now
  }
}

}  // namespace

bool Job::runs() const noexcept {
  return std::ranges::any_of(processes,
                             [](const Process& one) { return one.life != Life::kEnded; });
}

std::vector<Job> jobs_of(std::vector<Process> processes) {
  Groups groups(processes.size());
  std::map<std::string, std::size_t> by_name;
  std::map<Place, std::size_t> by_place;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    const Process& process = processes[p];
    // The number of a process that has ended may be in use again.
    const auto [place, is_new] = by_place.try_emplace({process.host, process.pid}, p);
    if (!is_new && process.life != Life::kEnded) place->second = p;
    if (!process.job.empty()) groups.unite(p, by_name.try_emplace(process.job, p).first->second);
  }
  for (std::size_t p = 0; p < processes.size(); ++p) {
    for (const auto* const slots :
         {&processes[p].connections, &processes[p].closed, &processes[p].failed}) {
      for (const SlotView& slot : *slots) {
        const auto peer = by_place.find({slot.peer_host, static_cast<std::int64_t>(slot.peer_pid)});
        if (peer == by_place.end()) continue;
        const bool both_have_names =
            !processes[p].job.empty() && !processes[peer->second].job.empty();
        if (!both_have_names) groups.unite(p, peer->second);
      }
    }
  }
  place_unconnected(processes, groups);
  std::map<std::size_t, Job> jobs;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    Job& job = jobs[groups.first_of(p)];
    if (job.name.empty()) job.name = processes[p].job;
    job.processes.push_back(std::move(processes[p]));
  }
  std::vector<Job> found;
  found.reserve(jobs.size());
  for (auto& [first, job] : jobs) found.push_back(std::move(job));
  return found;
}

}  // namespace beeline::pages
