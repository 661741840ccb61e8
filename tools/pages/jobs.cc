// SPDX-License-Identifier: Apache-2.0
#include "tools/pages/jobs.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
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
    const auto [first, other] = std::minmax(first_of(a), first_of(b));
    before_[other] = first;
  }

 private:
  std::vector<std::size_t> before_;
};

using Place = std::pair<std::string, std::int64_t>;  // host and pid

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
  std::map<std::size_t, Job> jobs;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    Job& job = jobs[groups.first_of(p)];
    if (job.name.empty()) job.name = processes[p].job;
    job.processes.push_back(std::move(processes[p]));
  }
  std::vector<Job> found;
  for (auto& [first, job] : jobs) found.push_back(std::move(job));
  return found;
}

}  // namespace beeline::pages
