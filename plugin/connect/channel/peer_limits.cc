// SPDX-License-Identifier: Apache-2.0
//
// The limit that depends on the process.
#include "plugin/connect/channel/peer_limits.h"

#include <sys/resource.h>

#include <cstdint>

namespace beeline {

std::size_t most_channels(const PeerLimits& limits) noexcept {
  if (limits.channels != 0) return limits.channels;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SIZE_MAX;
  return limit.rlim_cur / 4 * 3;  // "unlimited" must not overflow
}

}  // namespace beeline
