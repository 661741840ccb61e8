// SPDX-License-Identifier: Apache-2.0
//
// Limits on the connections and descriptors that peers may use. A peer that has the token of a
// listener is accepted, but it may still be malicious or faulty. The limits leave room for other
// peers.
#pragma once

#include <cstddef>

namespace beeline {

struct PeerLimits {
  // Each listener. NCCL makes one connection, or a few, with each.
  std::size_t waiting_of_channel = 32;  // being set up, by channel; any more are refused
  std::size_t waiting = 64;             // being set up; for another one, the oldest is refused
  std::size_t unaccepted = 64;          // set up but not accepted yet; any more are refused
  // Two processes need one channel, and for a short time a second one.
  std::size_t channels_of_process = 4;
  // All channels. 0: three quarters of the descriptors that this process may have.
  std::size_t channels = 0;
};

}  // namespace beeline
