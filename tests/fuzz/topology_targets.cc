// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/topology_targets.h"

namespace beeline::fuzz {

std::vector<Target> all_targets() {
  std::vector<Target> all;
  for (const auto group : {machine_targets(), text_targets(), graph_targets()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

std::string text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes bytes_of(std::string_view text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

}  // namespace beeline::fuzz
