// SPDX-License-Identifier: Apache-2.0
//
// The numbers of the statistics page as C++ enumerations.
#pragma once

#include <cstdint>

#include "include/beeline/stats_page.h"

namespace beeline {

#define BL_STATS_WORD_(number, name, cc_name, text) cc_name = (number),
enum class Counter : std::uint32_t { BEELINE_STATS_COUNTERS(BL_STATS_WORD_) };
enum class SlotState : std::uint32_t { BEELINE_STATS_STATES(BL_STATS_WORD_) };
enum class SlotRole : std::uint32_t { BEELINE_STATS_ROLES(BL_STATS_WORD_) };
enum class PathHealth : std::uint32_t { BEELINE_STATS_PATH_STATES(BL_STATS_WORD_) };
enum class Wait : std::uint32_t { BEELINE_STATS_WAITS(BL_STATS_WORD_) };
enum class Event : std::uint16_t { BEELINE_STATS_EVENTS(BL_STATS_WORD_) };
#undef BL_STATS_WORD_

}  // namespace beeline
