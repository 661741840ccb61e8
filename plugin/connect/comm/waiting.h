// SPDX-License-Identifier: Apache-2.0
//
// What one end of a comm waits for.
#pragma once

#include <cstdint>

namespace beeline {

enum class Wait : std::uint8_t {
  kNothing,
  kCredit,          // the sender: the peer has posted no receive
  kData,            // the receiver: the peer has sent nothing
  kAcknowledgment,  // the sender: its data is on the way
  kTest,            // its own application: requests are open, and nothing is called
  kPath,            // all paths have failed, and none works again yet
};

struct Waiting {
  Wait what = Wait::kNothing;
  std::int64_t since_ns = 0;
  std::uint64_t requests = 0;  // that are open: NCCL does not know that they are done
};

}  // namespace beeline
