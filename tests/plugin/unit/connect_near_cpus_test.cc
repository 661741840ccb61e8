// SPDX-License-Identifier: Apache-2.0
//
// Binding a thread to those processors of a list that it may use.
#include "plugin/connect/control/near_cpus.h"

#include <thread>
#include <vector>

#include "tests/support/catch.h"

using namespace beeline;

namespace {

cpu_set_t set_of(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return set;
}

bool are(const std::optional<cpu_set_t>& found, const std::vector<int>& cpus) {
  const cpu_set_t wanted = set_of(cpus);
  return found.has_value() && CPU_EQUAL(&*found, &wanted);
}

std::vector<int> own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// The processors of a new thread after run_near().
std::vector<int> cpus_after(const std::string& list) {
  std::vector<int> cpus;
  std::thread([&] {
    run_near(list);
    cpus = own_cpus();
  }).join();
  return cpus;
}

}  // namespace

TEST_CASE("near cpus: the intersection of the list and the allowed processors", "[unit][connect]") {
  const cpu_set_t allowed = set_of({2, 3, 4, 70, 1023});
  CHECK(are(allowed_cpus("3", allowed), {3}));
  CHECK(are(allowed_cpus("0-3,64-95", allowed), {2, 3, 70}));
  CHECK(are(allowed_cpus("4-4,3,0-3", allowed), {2, 3, 4}));
  CHECK(are(allowed_cpus("1000-2000000000", allowed), {1023}));
}

TEST_CASE("near cpus: an empty intersection and an invalid list give nothing", "[unit][connect]") {
  const cpu_set_t allowed = set_of({2, 3});
  for (const char* const list : {"", "0-1", "5", "1024", "3-2", "-1", "2-", "2,", ",2", "a", "2 ",
                                 "2;3", "99999999999", "2-99999999999"}) {
    CAPTURE(list);
    CHECK_FALSE(allowed_cpus(list, allowed).has_value());
  }
}

TEST_CASE("near cpus: a thread moves there, and stays where it is if it may not",
          "[unit][connect]") {
  const std::vector<int> own = own_cpus();
  REQUIRE_FALSE(own.empty());
  CHECK(cpus_after(std::to_string(own.back())) == std::vector<int>{own.back()});
  CHECK(cpus_after("") == own);
  CHECK(cpus_after("1023") == (own.back() == 1023 ? std::vector<int>{1023} : own));
  CHECK(cpus_after("no list") == own);
  CHECK(own_cpus() == own);
}
