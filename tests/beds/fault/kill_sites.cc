// SPDX-License-Identifier: Apache-2.0
#include "tests/beds/fault/kill_sites.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"

namespace beeline::test {
namespace {

// At later visits, queues are half full and locks are contended. If a site has fewer visits, the
// first number that it does not reach ends its runs.
constexpr unsigned kLaterVisits[] = {5, 20};
// Some sites depend on the order of the processes. Each must be visited in one of this many runs.
constexpr int kAttempts = 5;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> visited_sites(const std::string& who, const KillRun& run) {
  const std::string log =
      std::filesystem::temp_directory_path() / ("kill-sites-" + std::to_string(::getpid()));
  const KillResult result = run({.log = log});
  INFO(who << ", nobody killed\n" << joined(result.complaints));
  CHECK(result.complaints.empty());
  std::vector<std::string> sites;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) sites.push_back(line);
  std::filesystem::remove(log);
  return sites;
}

// Returns whether the process died at the site.
bool kill_at(const std::string& who, const std::string& site, unsigned visit, const KillRun& run) {
  const KillResult result = run({.site = site + ":" + std::to_string(visit)});
  INFO(who << " killed at " << site << ", visit " << visit << "\n" << joined(result.complaints));
  CHECK(result.complaints.empty());
  return result.died;
}

bool kill_at_first_visit(const std::string& who, const std::string& site, const KillRun& run) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (kill_at(who, site, 1, run)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> KillOrder::environment() const {
  std::vector<std::string> entries;
  if (!site.empty()) entries.push_back("SOFTNIC_KILL_AT=" + site);
  if (!log.empty()) entries.push_back("SOFTNIC_KILL_LOG=" + log);
  return entries;
}

void kill_everywhere(const std::string& who, size_t plausible_sites, const KillRun& run) {
  const std::vector<std::string> sites = visited_sites(who, run);
  CHECK(sites.size() >= plausible_sites);
  unsigned deaths = 0;
  for (const std::string& site : sites) {
    INFO(who << " came to " << site);
    const bool died = kill_at_first_visit(who, site, run);
    CHECK(died);
    deaths += died ? 1 : 0;
    for (const unsigned visit : kLaterVisits) {
      if (!kill_at(who, site, visit, run)) break;
      ++deaths;
    }
  }
  WARN(who << ": " << sites.size() << " sites, " << deaths << " deaths");
}

}  // namespace beeline::test
