// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/samples.h"

#include <algorithm>
#include <cstddef>

namespace beeline::perf {

void Samples::make_room(std::uint64_t count) {
  const auto in_all = [&] { return (seen_ + count + stride_ - 1) / stride_; };
  while (in_all() > most_) keep_every_second();
  kept_.reserve(in_all());
}

// kept_[i] is sample i * stride_ of the run.
void Samples::keep_every_second() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < kept_.size(); i += 2) kept_[kept++] = kept_[i];
  kept_.resize(kept);
  stride_ *= 2;
}

std::vector<std::int64_t> Samples::sorted() const {
  std::vector<std::int64_t> sorted = kept_;
  std::ranges::sort(sorted);
  return sorted;
}

}  // namespace beeline::perf
