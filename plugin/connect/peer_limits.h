// SPDX-License-Identifier: Apache-2.0
//
// What peers may take of this process. Who holds the token of a listener is let in, and may still
// mean ill or have lost count; what it takes leaves room for the next.
#pragma once

#include <cstddef>

namespace beeline {

struct PeerLimits {
  // A listener is for one connection, or a few. Of those that are being made...
  std::size_t waiting_of_channel = 32;  // by one channel: more are turned down
  std::size_t waiting = 64;             // in all: the oldest goes
  std::size_t unaccepted = 64;          // made, and nobody takes them: more are turned down
  // Two processes need one channel, and for a moment a second.
  std::size_t channels_of_process = 4;
  std::size_t channels =
      0;  // in all; 0: three quarters of the descriptors that this process may have
};

// The last of these.
std::size_t most_channels(const PeerLimits& limits) noexcept;

}  // namespace beeline
