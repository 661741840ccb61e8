// SPDX-License-Identifier: Apache-2.0
//
// Measured times and their percentiles. Results are medians, because a mean would include other
// work of the machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/clock.h"

namespace beeline::bench {

class Samples {
 public:
  void add(double value) { values_.push_back(value); }

  // 0.5 is the median. Reorders the samples; 0 if there are none.
  double percentile(double share) {
    if (values_.empty()) return 0;
    const auto rank = static_cast<size_t>(share * static_cast<double>(values_.size() - 1));
    const auto place = values_.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values_.begin(), place, values_.end());
    return *place;
  }
  double median() { return percentile(0.5); }

 private:
  std::vector<double> values_;
};

// Nanoseconds that a call takes.
template <class F>
double timed_ns(F&& call) {
  const int64_t start = now_ns();
  call();
  return static_cast<double>(now_ns() - start);
}

// Bytes in nanoseconds, as GB/s (10^9).
inline double gb_per_s(size_t bytes, double ns) {
  return ns > 0 ? static_cast<double>(bytes) / ns : 0;
}

}  // namespace beeline::bench
