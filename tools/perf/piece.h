// SPDX-License-Identifier: Apache-2.0
//
// A part of a buffer.
#pragma once

#include <cstddef>

namespace beeline::perf {

struct Piece {
  size_t at = 0;
  size_t size = 0;
};

}  // namespace beeline::perf
