// SPDX-License-Identifier: Apache-2.0
#include "tools/pages/processes.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "plugin/stats/process_identity.h"
#include "plugin/stats/sweep.h"

namespace beeline::pages {
namespace {

std::string read_proc(std::int64_t pid, const char* name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The value of a line of /proc/PID/status.
std::string_view status_line(std::string_view status, const std::string& name) {
  const std::size_t at = status.find("\n" + name + ":\t");
  if (at == std::string_view::npos) return {};
  const std::string_view rest = status.substr(at + name.size() + 3);
  return rest.substr(0, rest.find('\n'));
}

Life life_from(std::string_view state) {
  switch (state.empty() ? 'X' : state.front()) {
    case 'T':
    case 't': return Life::kStopped;
    case 'Z':
    case 'X': return Life::kEnded;
    default: return Life::kRuns;
  }
}

// Anybody may make a file with the number of a process of somebody else in its name.
bool is_of_process(const PageReader& page, std::string_view users) {
  const std::string_view effective = users.substr(std::min(users.find('\t') + 1, users.size()));
  return effective.substr(0, effective.find('\t')) == std::to_string(page.owner());
}

struct Found {
  Life life = Life::kEnded;
  bool is_forged = false;
};
Found look_at_process(const PageOwner& owner, const PageReader& page) {
  if (process_start_time(static_cast<pid_t>(owner.pid)) != owner.start_time) return {};
  const std::string status = read_proc(owner.pid, "status");
  const Life life = life_from(status_line(status, "State"));
  return {.life = life,
          .is_forged = life != Life::kEnded && !is_of_process(page, status_line(status, "Uid"))};
}

bool has_failed_path(const SlotView& slot) {
  return std::ranges::any_of(slot.paths,
                             [](const PathView& path) { return path.health == PathHealth::kDown; });
}

void add_slots(Process& process, const PageReader& page) {
  for (std::uint32_t i = 0; i < page.slots_used(); ++i) {
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

std::string remark_on(std::size_t unreadable) {
  if (unreadable == 0) return {};
  return std::to_string(unreadable) + (unreadable == 1 ? " statistics page" : " statistics pages") +
         " cannot be used: of another user, or of another version of Beeline\n";
}

Outcome<Processes> read_processes(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator files(directory, error);
  if (error) return fail("cannot read " + directory + ": " + error.message());
  Processes processes;
  for (const auto& file : files) {
    const std::optional<PageOwner> owner = parse_page_file_name(file.path().filename().string());
    if (!owner) continue;
    const Result<PageReader> page = PageReader::open(file.path());
    const Found found = page ? look_at_process(*owner, *page) : Found{};
    if (!page || found.is_forged) {
      ++processes.unreadable;
      continue;
    }
    Process& process = processes.all.emplace_back(Process{.pid = owner->pid,
                                                          .start_time = owner->start_time,
                                                          .host = page->host(),
                                                          .life = found.life,
                                                          .rank = page->rank(),
                                                          .ranks = page->ranks(),
                                                          .identity = page->identity(),
                                                          .slots_refused = page->slots_refused(),
                                                          .connections = {}});
    add_slots(process, *page);
  }
  std::ranges::sort(processes.all, {}, &Process::pid);
  return processes;
}

}  // namespace beeline::pages
