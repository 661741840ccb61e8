// SPDX-License-Identifier: Apache-2.0
//
// Describes what one end of a comm waits for.
#pragma once

#include <cstdint>

#include "plugin/stats/words.h"

namespace beeline {

struct Waiting {
  Wait what = Wait::kNothing;
  bool has_moved = false;  // since the last look: nothing is waited for
  std::int64_t since_ns = 0;
  std::uint64_t requests = 0;  // that are open: NCCL does not know that they are done
};

}  // namespace beeline
