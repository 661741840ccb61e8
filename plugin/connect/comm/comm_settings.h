// SPDX-License-Identifier: Apache-2.0
//
// What one communicator of NCCL wants of the connections it makes.
#pragma once

#include <cstdint>

namespace beeline {

// Who began it. Nobody says when the work of kNobody ends.
using OwnerId = std::uint64_t;
inline constexpr OwnerId kNobody = 0;

struct CommSettings {
  OwnerId owner = kNobody;
  int traffic_class = -1;  // of its queue pairs; -1: no wish
};

}  // namespace beeline
