// SPDX-License-Identifier: Apache-2.0
//
// The settings that an NCCL communicator has for its connections.
#pragma once

#include <cstdint>

namespace beeline {

// The communicator that listens or connects. Older versions of NCCL's interface do not say which
// one calls, and so never announce the end of kNoOwner.
using OwnerId = std::uint64_t;
inline constexpr OwnerId kNoOwner = 0;

struct CommSettings {
  OwnerId owner = kNoOwner;
  int traffic_class = -1;  // of the queue pairs; -1: the default
};

}  // namespace beeline
