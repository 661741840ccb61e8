// SPDX-License-Identifier: Apache-2.0
//
// The layout of the statistics page and its texts, in C and in C++.
#include <cstring>
#include <set>
#include <string>

#include "plugin/stats/words.h"
#include "tests/support/catch.h"

extern "C" const char* stats_layout_event_text(uint32_t number);
extern "C" size_t stats_layout_slot_bytes(void);

namespace beeline {
namespace {

TEST_CASE("stats layout: C and C++ agree", "[unit][stats]") {
  CHECK(stats_layout_slot_bytes() == sizeof(beeline_stats_slot));
  CHECK(std::string(stats_layout_event_text(BEELINE_EVENT_PEER_DIED)) == "peer died");
  CHECK(static_cast<int>(Event::kPeerDied) == BEELINE_EVENT_PEER_DIED);
}

TEST_CASE("stats layout: each number has a text of its own, and an unknown one too",
          "[unit][stats]") {
  std::set<std::string> texts;
  size_t events = 0;
#define BL_COLLECT(number, name, cc_name, text)                    \
  texts.insert(beeline_stats_event_text(number));                  \
  CHECK(std::strcmp(beeline_stats_event_text(number), text) == 0); \
  ++events;
  BEELINE_STATS_EVENTS(BL_COLLECT)
#undef BL_COLLECT
  CHECK(texts.size() == events);
  CHECK(std::string(beeline_stats_event_text(63)) == "?");
  CHECK(std::string(beeline_stats_state_text(BEELINE_STATE_CLOSED)) == "closed");
  CHECK(std::string(beeline_stats_counter_text(BEELINE_STATS_COUNTER_COUNT)) == "?");
  CHECK(std::string(beeline_stats_role_text(BEELINE_ROLE_RECEIVE)) == "receive");
}

TEST_CASE("stats layout: an event's word has its three parts", "[unit][stats]") {
  const uint64_t what = beeline_stats_what(0xffff, 0x1234, 0xfffffffe);
  CHECK(beeline_stats_kind(what) == 0xffff);
  CHECK(beeline_stats_rail(what) == 0x1234);
  CHECK(beeline_stats_arg(what) == 0xfffffffe);
}

}  // namespace
}  // namespace beeline
