// SPDX-License-Identifier: Apache-2.0
#include "tools/pages/blocked_threads.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <system_error>
#include <thread>

namespace beeline::pages {
namespace {

constexpr std::chrono::milliseconds kBetween(200);

// "4711 (name) D ...", where the name may contain anything.
bool is_blocked(const std::filesystem::path& task) {
  std::ifstream file(task / "stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_ends = text.rfind(')');
  return name_ends != std::string::npos && text.compare(name_ends, 3, ") D") == 0;
}

std::set<std::string> blocked_threads_of(std::int64_t pid) {
  std::set<std::string> blocked;
  std::error_code error;
  std::filesystem::directory_iterator tasks("/proc/" + std::to_string(pid) + "/task", error);
  for (const std::filesystem::directory_iterator end; !error && tasks != end;
       tasks.increment(error)) {
    if (is_blocked(tasks->path())) blocked.insert(tasks->path().filename());
  }
  return blocked;
}

}  // namespace

std::vector<std::size_t> count_blocked_threads(const std::vector<std::int64_t>& pids) {
  std::vector<std::set<std::string>> before(pids.size());
  std::ranges::transform(pids, before.begin(), blocked_threads_of);
  std::vector<std::size_t> counts(pids.size());
  if (std::ranges::all_of(before, [](const auto& one) { return one.empty(); })) return counts;
  std::this_thread::sleep_for(kBetween);
  for (std::size_t i = 0; i < pids.size(); ++i) {
    const std::set<std::string> now = blocked_threads_of(pids[i]);
    counts[i] = static_cast<std::size_t>(std::ranges::count_if(
        now, [&](const std::string& one) { return before[i].contains(one); }));
  }
  return counts;
}

}  // namespace beeline::pages
