// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/patterns/group_script.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace beeline::perf {
namespace {

// The part that a send with this tag fills: the first free part with that tag.
size_t claim(const Group& group, std::array<bool, kMaxParts>& taken, int tag) {
  for (size_t i = 0; i < group.n; ++i) {
    if (taken[i] || group.parts[i].tag != tag) continue;
    taken[i] = true;
    return i;
  }
  return 0;  // not reached: the group has every tag that is sent
}

}  // namespace

Group make_group(Random& random, size_t parts) {
  Group group;
  group.n = parts;
  const int first = static_cast<int>(random.below(1000));
  const bool repeats = random.one_in(3);
  for (size_t i = 0; i < parts; ++i) {
    group.parts[i].tag = first + static_cast<int>(repeats ? random.below(2) : i);
  }
  std::array<size_t, kMaxParts> shuffled{};
  std::iota(shuffled.begin(), shuffled.end(), size_t{0});
  for (size_t i = parts; i > 1; --i) std::swap(shuffled[i - 1], shuffled[random.below(i)]);
  std::array<bool, kMaxParts> taken{};
  for (size_t j = 0; j < parts; ++j) {
    group.order[j] = claim(group, taken, group.parts[shuffled[j]].tag);
  }
  return group;
}

std::vector<Group> fixed_script(std::uint64_t seed, size_t groups, size_t most_parts, size_t size) {
  Random random(seed);
  std::vector<Group> script;
  for (size_t g = 0; g < groups; ++g) {
    Group group = make_group(random, 1 + g % most_parts);
    for (size_t i = 0; i < group.n; ++i) {
      group.parts[i].capacity = size;
      group.parts[i].size = size - std::min(size, i);
    }
    script.push_back(group);
  }
  return script;
}

std::vector<Group> random_script(std::uint64_t seed, size_t groups, size_t most_parts,
                                 const std::vector<size_t>& sizes) {
  Random random(seed);
  const size_t largest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<Group> script;
  for (size_t g = 0; g < groups; ++g) {
    Group group = make_group(random, 1 + random.below(most_parts));
    for (size_t i = 0; i < group.n; ++i) {
      GroupPart& part = group.parts[i];
      part.size = sizes[random.below(sizes.size())];
      if (random.one_in(2)) part.size = random.below(part.size + 1);
      part.capacity = part.size;
      if (random.one_in(2)) part.capacity += random.below(largest - part.size + 1);
    }
    script.push_back(group);
  }
  return script;
}

}  // namespace beeline::perf
