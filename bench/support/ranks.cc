// SPDX-License-Identifier: Apache-2.0
#include "bench/support/ranks.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>

namespace beeline::bench {
namespace {

constexpr std::chrono::seconds kDeadline{300};
constexpr unsigned kTurnsBeforeYield = 4096;

// Names the core that a processor belongs to, as its list of hyperthreads; empty if unknown.
std::string core_of(int processor) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(processor) +
                     "/topology/thread_siblings_list");
  std::string siblings;
  std::getline(file, siblings);
  return siblings.empty() ? std::to_string(processor) : siblings;
}

std::vector<int> find_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<int> found;
  std::vector<std::string> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &allowed)) continue;
    const std::string core = core_of(i);
    if (std::find(cores.begin(), cores.end(), core) != cores.end()) continue;
    cores.push_back(core);
    found.push_back(i);
  }
  if (found.empty()) found.push_back(0);
  return found;
}

void pin_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof(set), &set);  // if it fails, the results only vary more
}

}  // namespace

const std::vector<int>& processors() {
  static const std::vector<int> found = find_processors();
  return found;
}

int run_ranks(const std::vector<Rank>& ranks) {
  const std::vector<int>& cpus = processors();
  std::vector<test::PeerBody> bodies;
  for (size_t i = 0; i < ranks.size(); ++i) {
    bodies.emplace_back([&, i](test::Peer& peer) {
      setenv("SOFTNIC_HOST", ranks[i].host.c_str(), 1);
      if (cpus.size() >= ranks.size()) pin_to(cpus[i]);
      ranks[i].body(peer);
      std::fflush(stdout);  // _exit does not flush
    });
  }
  try {
    test::run_peers(test::PeerMode::kProcesses, bodies, kDeadline);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}

void Spin::operator()() noexcept {
  if (++turns_ % kTurnsBeforeYield == 0) sched_yield();
}

}  // namespace beeline::bench
