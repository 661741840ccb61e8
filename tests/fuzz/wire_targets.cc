// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/wire_targets.h"

namespace beeline::fuzz {

std::vector<Target> all_targets() {
  std::vector<Target> all;
  for (const auto group : {message_targets(), frame_targets(), memory_targets()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace beeline::fuzz
