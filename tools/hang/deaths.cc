// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/deaths.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tools/hang/unmade.h"

namespace beeline::hang {
namespace {

using pages::Life;
using pages::Process;

std::optional<std::uint64_t> noticed_at_ns(const SlotView& failed) {
  const auto event = std::ranges::find(failed.life, Event::kPeerDied, &EventView::event);
  if (event == failed.life.end()) return std::nullopt;
  return event->time_ns;
}

class Deaths {
 public:
  explicit Deaths(std::span<const Process> processes) : processes_(processes) {
    for (std::size_t p = 0; p < processes.size(); ++p)
      by_pid_[{processes[p].host, processes[p].pid}].push_back(p);
  }

  // From the death that this process has noticed to the one that came first.
  std::optional<Death> follow(std::size_t survivor, std::size_t failed) const {
    Death death = {.process = {}, .witness = survivor, .failed = failed, .survivor = survivor};
    std::set<std::size_t> visited = {survivor};
    for (;;) {
      const SlotView& slot = processes_[death.witness].failed[death.failed];
      const auto found = by_pid_.find({slot.peer_host, static_cast<std::int64_t>(slot.peer_pid)});
      if (found == by_pid_.end()) return death;
      const auto is_it = [&](std::size_t p) { return is_peer(processes_[p], slot); };
      const auto peer = std::ranges::find_if(found->second, is_it);
      if (peer == found->second.end()) return death;
      if (processes_[*peer].life != Life::kEnded) return std::nullopt;  // it was unreachable
      death.process = *peer;
      const std::optional<std::size_t> before = first_noticed(processes_[*peer]);
      if (!before || !visited.insert(*peer).second) return death;
      death = {.process = {}, .witness = *peer, .failed = *before, .survivor = survivor};
    }
  }

  static std::optional<std::size_t> first_noticed(const Process& process) {
    std::optional<std::size_t> first;
    for (std::size_t f = 0; f < process.failed.size(); ++f) {
      const auto at_ns = noticed_at_ns(process.failed[f]);
      if (!at_ns || was_replaced(process.failed[f], process)) continue;
      if (!first || *at_ns < *noticed_at_ns(process.failed[*first])) first = f;
    }
    return first;
  }

 private:
  // The number of a process may have been used before.
  static bool is_peer(const Process& process, const SlotView& slot) {
    return process.identity == 0 || slot.peer_identity == 0 ||
           process.identity == slot.peer_identity;
  }

  std::span<const Process> processes_;
  std::map<std::pair<std::string, std::int64_t>, std::vector<std::size_t>> by_pid_;
};

bool is_alive(const Process& process) { return process.life != Life::kEnded; }

}  // namespace

std::vector<Death> find_deaths(std::span<const Process> processes) {
  const bool some_run = std::ranges::any_of(processes, is_alive);
  const Deaths known(processes);
  std::vector<Death> deaths;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    if (some_run && !is_alive(processes[p])) continue;
    const std::optional<std::size_t> noticed = Deaths::first_noticed(processes[p]);
    if (!noticed) continue;
    if (std::optional<Death> death = known.follow(p, *noticed)) deaths.push_back(*death);
  }
  return deaths;
}

std::uint64_t noticed_at_ns(const Death& death, std::span<const Process> processes) {
  return *noticed_at_ns(processes[death.witness].failed[death.failed]);
}

}  // namespace beeline::hang
