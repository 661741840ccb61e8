// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/this_host.h"

#include <string>
#include <thread>
#include <utility>

namespace beeline::doctor {

checks::Tree this_tree(const Environ& environ) {
  return checks::Tree("", std::string(environ.get("BEELINE_SYSFS_ROOT").value_or("")));
}

checks::VerbsView this_verbs(const Environ& environ) {
  return checks::read_verbs(std::string(environ.get("BEELINE_IBVERBS_LIB").value_or("")));
}

checks::CounterSamples CounterWatch::finish() {
  checks::CounterSamples samples = {.first = std::move(first_), .second = {}};
  if (seconds_ > 0 && !samples.first.empty()) {
    std::this_thread::sleep_until(start_ + std::chrono::duration<double>(seconds_));
    samples.second = checks::read_counters(tree_);
  }
  return samples;
}

}  // namespace beeline::doctor
