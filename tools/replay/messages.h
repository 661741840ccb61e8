// SPDX-License-Identifier: Apache-2.0
//
// The last messages of a connection, of which the page has the sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/pages/page_reader.h"

namespace beeline::replay {

// Messages of one size that follow one another.
struct MessageRun {
  std::uint64_t first = 0;  // counted from 1
  std::uint64_t count = 0;
  std::uint32_t bytes = 0;  // BEELINE_STATS_UNDER_WAY: awaited
};

// Oldest first.
std::vector<MessageRun> last_messages(const SlotView& connection);

// "messages 4701 to 4708: 65536 bytes each", "message 4709: awaited"
std::string text_of(const MessageRun& run);

}  // namespace beeline::replay
