// SPDX-License-Identifier: Apache-2.0
//
// Counts what the sender alone gives to the device, which the patterns of Traffic cannot tell from
// the grants of the receiver.
#pragma once

#include <cstddef>

#include "tests/support/nullverbs/report.h"
#include "tests/support/one_thread/setup.h"
#include "tests/support/one_thread/traffic.h"

namespace beeline::bench {

// For each message.
struct SenderCounts {
  double doorbells;  // calls of ibv_post_send
  double work_requests;
  double completions;
};

// Sends `count` messages, one at a time.
SenderCounts count_sender(nccl::Net& net, const NullverbsReport& report, const CommPair& comms,
                          const Buffers& buffers, std::size_t count);

}  // namespace beeline::bench
