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

Life life_of(const PageOwner& owner) {
  if (process_start_time(static_cast<pid_t>(owner.pid)) != owner.start_time) return Life::kEnded;
  const std::string status = read_proc(owner.pid, "status");
  constexpr std::string_view kState = "\nState:\t";
  const std::size_t at = status.find(kState);
  if (at == std::string::npos || at + kState.size() >= status.size()) return Life::kEnded;
  switch (status[at + kState.size()]) {
    case 'T':
    case 't': return Life::kStopped;
    case 'Z':
    case 'X': return Life::kEnded;
    default: return Life::kRuns;
  }
}

void add_slots(Process& process, const PageReader& page) {
  for (std::uint32_t i = 0; i < page.slots_used(); ++i) {
    std::optional<SlotView> slot = page.brief_slot(i);
    if (!slot || slot->state == SlotState::kFree) continue;
    if (slot->state == SlotState::kFailed) {
      if (std::optional<SlotView> whole = page.slot(i)) process.failed.push_back(*std::move(whole));
    }
    const bool is_open = slot->closed_ns == 0;
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
         " cannot be read: of another user, or of another version of Beeline\n";
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
    if (!page) {
      ++processes.unreadable;
      continue;
    }
    Process& process = processes.all.emplace_back(Process{.pid = owner->pid,
                                                          .start_time = owner->start_time,
                                                          .host = page->host(),
                                                          .life = life_of(*owner),
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
