// SPDX-License-Identifier: Apache-2.0
//
// Kills a program at each of its kill sites. A first run, in which nobody is killed, lists the
// sites that the program visits.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace beeline::test {

// What a run does with the kill points.
struct KillOrder {
  std::string site = {};  // "file:line:N": the process dies there, at the N-th visit
  std::string log = {};   // the process lists the sites that it visits in this file

  std::vector<std::string> environment() const;
};

struct KillResult {
  bool died = false;                         // at the site
  std::vector<std::string> complaints = {};  // empty: no fault was found
};

using KillRun = std::function<KillResult(const KillOrder&)>;

// Fails the Catch2 test for every complaint, for too short a list of sites, and for a site at which
// the process never died.
void kill_everywhere(const std::string& who, size_t plausible_sites, const KillRun& run);

}  // namespace beeline::test
