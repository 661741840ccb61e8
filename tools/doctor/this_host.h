// SPDX-License-Identifier: Apache-2.0
//
// This host as the plugin sees it: BEELINE_SYSFS_ROOT counts.
#pragma once

#include <chrono>

#include "plugin/checks/all_checks.h"
#include "plugin/config/environ.h"

namespace beeline::doctor {

checks::Tree this_tree(const Environ& environ);
checks::VerbsView this_verbs(const Environ& environ);

// Reads the counters of the ports twice. The checks are made in between.
class CounterWatch {
 public:
  CounterWatch(const checks::Tree& tree, double seconds)
      : tree_(tree), seconds_(seconds), first_(checks::read_counters(tree)) {}

  // Waits for the rest of the time, and reads again.
  checks::CounterSamples finish();

 private:
  const checks::Tree& tree_;
  double seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  checks::Counters first_;
};

}  // namespace beeline::doctor
