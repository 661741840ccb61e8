// SPDX-License-Identifier: Apache-2.0
//
// Going through the kill sites of a program: a run in which it lives tells which it comes to, and
// then it is killed at each of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace beeline::test {

// What a run makes of the kill points.
struct KillOrder {
  std::string site = {};  // "file:line:N": die there, at the N-th visit
  std::string log = {};   // list the sites in this file

  std::vector<std::string> environment() const;
};

struct KillResult {
  bool died = false;                         // where it was ordered to
  std::vector<std::string> complaints = {};  // none: all is well
};

using KillRun = std::function<KillResult(const KillOrder&)>;

// Catch2 hears of every complaint, of too short a list, and of a site that never killed.
void kill_everywhere(const std::string& who, size_t plausible_sites, const KillRun& run);

}  // namespace beeline::test
