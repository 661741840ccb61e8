// SPDX-License-Identifier: Apache-2.0
//
// Limits on the connections and descriptors that peers may use. A peer that has the token of a
// listener is accepted, but it may still be malicious or faulty. The limits leave room for other
// peers.
#pragma once

#include <cstddef>

namespace beeline {

struct PeerLimits {
  // A listener is for one connection, or a few. These limits apply to connections that are being
  // set up.
  std::size_t waiting_of_channel = 32;  // for each channel: more are refused
  std::size_t waiting = 64;             // in all: the oldest is refused
  std::size_t unaccepted = 64;          // set up, but not accepted: more are refused
  // Two processes need one channel, and for a short time a second one.
  std::size_t channels_of_process = 4;
  std::size_t channels =
      0;  // in all; 0: three quarters of the descriptors that this process may have
};

// The last of these.
std::size_t most_channels(const PeerLimits& limits) noexcept;

}  // namespace beeline
