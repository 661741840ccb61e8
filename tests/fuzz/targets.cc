// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/targets.h"

#include <algorithm>

namespace beeline::fuzz {

const Target* find_target(std::string_view name) {
  static const std::vector<Target> all = all_targets();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Target& target) { return target.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace beeline::fuzz
