// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/clocks.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace beeline::replay {
namespace {

// A control channel is not made when an answer takes longer.
constexpr std::int64_t kMostErrorNs = 3600 * kNsPerSec;

// How far the clock of recording `to` is ahead of that of `from`.
struct Measured {
  std::size_t from = 0;
  std::size_t to = 0;
  ClockOffset clock;
};

std::vector<Measured> measured_between(std::span<const Recording> recordings) {
  std::map<std::pair<std::string, std::int64_t>, std::size_t> places;
  std::map<std::string, std::size_t> first_of_host;
  std::vector<Measured> all;
  const auto add = [&](std::size_t from, std::size_t to, ClockOffset clock) {
    all.push_back({.from = from, .to = to, .clock = clock});
    all.push_back({.from = to,
                   .to = from,
                   .clock = {.ahead_ns = static_cast<std::int64_t>(
                                 -static_cast<std::uint64_t>(clock.ahead_ns)),
                             .error_ns = clock.error_ns}});
  };
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    places.emplace(std::pair(recordings[i].host, recordings[i].pid), i);
    const auto [first, is_new] = first_of_host.emplace(recordings[i].host, i);
    if (!is_new) add(first->second, i, {});
  }
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    for (const SlotView& slot : recordings[i].connections) {
      if (slot.peer_clock.error_ns <= 0 || slot.peer_clock.error_ns > kMostErrorNs) continue;
      const auto peer = places.find({slot.peer_host, static_cast<std::int64_t>(slot.peer_pid)});
      if (peer != places.end()) add(i, peer->second, slot.peer_clock);
    }
  }
  return all;
}

std::int64_t own_shift(const Recording& recording) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(recording.opened_unix_ns) -
                                   static_cast<std::uint64_t>(recording.opened_ns));
}

}  // namespace

std::vector<Placement> place_clocks(std::span<const Recording> recordings) {
  std::vector<Placement> placements;
  placements.reserve(recordings.size());
  for (const Recording& recording : recordings) {
    placements.push_back({.shift_ns = own_shift(recording), .error_ns = std::nullopt});
  }
  if (placements.empty()) return placements;
  placements.front().error_ns = 0;
  const std::vector<Measured> measured = measured_between(recordings);
  // Errors add up on the way. There are few processes, so trying again until nothing gets better is
  // fast enough. It ends, since errors only get smaller.
  for (bool is_better = true; is_better;) {
    is_better = false;
    for (const Measured& one : measured) {
      const Placement& from = placements[one.from];
      Placement& to = placements[one.to];
      if (!from.error_ns) continue;
      const std::int64_t error = *from.error_ns + one.clock.error_ns;
      if (to.error_ns && *to.error_ns <= error) continue;
      to.shift_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(from.shift_ns) -
                                              static_cast<std::uint64_t>(one.clock.ahead_ns));
      to.error_ns = error;
      is_better = true;
    }
  }
  return placements;
}

}  // namespace beeline::replay
