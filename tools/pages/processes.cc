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

std::vector<SlotView> open_connections(const PageReader& page) {
  std::vector<SlotView> connections;
  for (std::uint32_t i = 0; i < page.slots_used(); ++i) {
    std::optional<SlotView> slot = page.brief_slot(i);
    const bool is_open = slot && slot->state != SlotState::kFree && slot->closed_ns == 0;
    if (is_open) connections.push_back(*std::move(slot));
  }
  return connections;
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
    const Life life = life_of(*owner);
    processes.all.push_back({.pid = owner->pid,
                             .host = page->host(),
                             .life = life,
                             .rank = page->rank(),
                             .connections = open_connections(*page)});
  }
  std::ranges::sort(processes.all, {}, &Process::pid);
  return processes;
}

}  // namespace beeline::pages
