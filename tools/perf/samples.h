// SPDX-License-Identifier: Apache-2.0
//
// The measured times of a run, in bounded memory. Beyond a limit only every second sample is kept,
// then only every fourth, and so on, so that the kept ones are spread evenly over the whole run.
// The least and the greatest are exact.
#pragma once

#include <cstdint>
#include <vector>

namespace beeline::perf {

class Samples {
 public:
  static constexpr std::uint64_t kMost = 10'000'000;  // 80 MB

  explicit Samples(std::uint64_t most = kMost) : most_(most) {}

  // Reserves memory for `count` more samples, so that add() does not allocate. This takes long.
  void make_room(std::uint64_t count);
  void add(std::int64_t sample) {
    if (seen_ == 0 || sample < least_) least_ = sample;
    if (seen_ == 0 || sample > greatest_) greatest_ = sample;
    if (seen_++ % stride_ == 0) kept_.push_back(sample);
  }

  const std::vector<std::int64_t>& kept() const noexcept { return kept_; }
  std::vector<std::int64_t> sorted() const;
  // Over all samples. 0 if there are none.
  std::int64_t least() const noexcept { return least_; }
  std::int64_t greatest() const noexcept { return greatest_; }

 private:
  void keep_every_second();

  std::uint64_t most_;
  std::uint64_t stride_ = 1;  // a power of two
  std::uint64_t seen_ = 0;
  std::int64_t least_ = 0;
  std::int64_t greatest_ = 0;
  std::vector<std::int64_t> kept_;
};

}  // namespace beeline::perf
