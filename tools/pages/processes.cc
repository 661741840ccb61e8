// SPDX-License-Identifier: Apache-2.0
#include "tools/pages/processes.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace beeline::pages {
namespace {

bool has_failed_path(const SlotView& slot) {
  return std::ranges::any_of(slot.paths,
                             [](const PathView& path) { return path.health == PathHealth::kDown; });
}

void add_slots(Process& process, const PageReader& page, std::uint32_t used) {
  for (std::uint32_t i = 0; i < used; ++i) {
    std::optional<SlotView> slot = page.brief_slot(i);
    if (!slot || slot->state == SlotState::kFree) continue;
    if (slot->state == SlotState::kFailed) {
      if (std::optional<SlotView> whole = page.slot(i)) process.failed.push_back(*std::move(whole));
    }
    const bool is_open = slot->closed_ns == 0;
    if (is_open && has_failed_path(*slot)) {  // its events say whether its port is down
      if (std::optional<SlotView> whole = page.slot(i)) slot = std::move(whole);
    }
    if (slot->role == SlotRole::kListen) {
      if (is_open) process.listeners.push_back(*std::move(slot));
    } else {
      (is_open ? process.connections : process.closed).push_back(*std::move(slot));
    }
  }
}

}  // namespace

std::string usual_directory() {
  const char* const set = std::getenv("BEELINE_STATS_DIR");
  return set != nullptr && *set != '\0' ? set : "/dev/shm";
}

Outcome<Processes> read_processes(const std::string& directory) {
  Processes processes;
  processes.left_out =
      BL_TRY(visit_pages(directory, [&](const PageOwner& owner, Life life, const PageReader& page,
                                        std::uint32_t used) {
        add_slots(processes.all.emplace_back(Process{.pid = owner.pid,
                                                     .start_time = owner.start_time,
                                                     .host = page.host(),
                                                     .life = life,
                                                     .rank = page.rank(),
                                                     .ranks = page.ranks(),
                                                     .job = page.job(),
                                                     .identity = page.identity(),
                                                     .slots_refused = page.slots_refused(),
                                                     .connections = {}}),
                  page, used);
      }));
  std::ranges::sort(processes.all, {}, &Process::pid);
  return processes;
}

}  // namespace beeline::pages
