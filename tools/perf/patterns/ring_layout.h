// SPDX-License-Identifier: Apache-2.0
//
// How the data of an all-reduce is divided among channels (comms), ranks (chunks) and slices. The
// unit is a float. Up to three remaining bytes belong to the last chunk and are added as bytes.
#pragma once

#include <algorithm>
#include <cstddef>

#include "tools/perf/piece.h"

namespace beeline::perf {

class RingLayout {
 public:
  RingLayout(size_t bytes, size_t channels, size_t ranks, size_t slice)
      : bytes_(bytes), channels_(channels), ranks_(ranks), slice_(slice) {
    size_t longest = 0;
    for (size_t c = 0; c < channels; ++c) {
      for (size_t k = 0; k < ranks; ++k) longest = std::max(longest, chunk(c, k).size);
    }
    // Empty data still needs one message per step, as in NCCL.
    slices_ = std::max<size_t>(1, (longest + slice - 1) / slice);
  }

  size_t slices() const noexcept { return slices_; }
  size_t slice_bytes() const noexcept { return slice_; }

  Piece chunk(size_t channel, size_t index) const noexcept {
    const size_t floats = bytes_ / sizeof(float);
    const size_t all = channels_ * ranks_;
    const size_t number = channel * ranks_ + index;
    const size_t from = floats * number / all * sizeof(float);
    const size_t to = number + 1 == all ? bytes_ : floats * (number + 1) / all * sizeof(float);
    return {from, to - from};
  }

  // All chunks have the same number of slices, so the last slices of a short chunk are empty.
  Piece slice(size_t channel, size_t index, size_t number) const noexcept {
    const Piece whole = chunk(channel, index);
    const size_t from = std::min(number * slice_, whole.size);
    return {whole.at + from, std::min(slice_, whole.size - from)};
  }

 private:
  size_t bytes_;
  size_t channels_;
  size_t ranks_;
  size_t slice_;
  size_t slices_ = 1;
};

}  // namespace beeline::perf
