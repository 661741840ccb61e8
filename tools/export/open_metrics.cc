// SPDX-License-Identifier: Apache-2.0
#include "tools/export/open_metrics.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "include/beeline/stats_page.h"

namespace beeline::exporter {
namespace {

struct Word {
  std::uint32_t number;
  std::string text;
};

// "credit" for CREDIT: shorter than the texts for people, and they do not change.
std::string lower(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// From the lists in the header of the page, so that a new reason or state gets its series.
#define BL_EXPORT_WORD(number, name, cc_name, text) {(number), lower(#name)},
const std::vector<Word>& reasons() {
  static const std::vector<Word> words = {BEELINE_STATS_WAITS(BL_EXPORT_WORD)};
  return words;
}
const std::vector<Word>& states() {
  static const std::vector<Word> words = {BEELINE_STATS_STATES(BL_EXPORT_WORD)};
  return words;
}
#undef BL_EXPORT_WORD

template <class Does>
void for_each_in(const State& state, std::vector<SlotView> pages::Process::*list,
                 const Does& does) {
  for (const pages::Process& process : state.processes.all) {
    if (process.life == pages::Life::kEnded) continue;
    for (const SlotView& slot : process.*list) does(slot);
  }
}
template <class Does>
void for_each_open(const State& state, const Does& does) {
  for_each_in(state, &pages::Process::connections, does);
}

void add_states(Exposition& out, const State& state) {
  out.begin({.name = "beeline_connections", .help = "Connections that are not closed."});
  for (const SlotRole role : {SlotRole::kSend, SlotRole::kReceive}) {
    const std::string direction = direction_of(role);
    for (const Word& word : states()) {
      const auto wanted = static_cast<SlotState>(word.number);
      if (wanted == SlotState::kFree || wanted == SlotState::kClosed) continue;
      std::uint64_t count = 0;
      for_each_open(state, [&](const SlotView& slot) {
        if (slot.role == role && slot.state == wanted) ++count;
      });
      out.add({{"direction", direction}, {"state", word.text}}, count);
    }
  }
}

double seconds_of_wait(const SlotView& slot, std::int64_t now_ns) {
  const auto since_ns = static_cast<std::int64_t>(slot.waits_since_ns);
  return static_cast<double>(std::max<std::int64_t>(now_ns - since_ns, 0)) / 1e9;
}

// Both samples of each reason, also if none waits, so that an alert finds a series.
void add_waits(Exposition& out, const State& state) {
  std::vector<std::uint64_t> counts(reasons().size());
  std::vector<double> longest(reasons().size());
  const auto count = [&](const SlotView& slot) {
    if (slot.waits_since_ns == 0) return;
    for (std::size_t i = 0; i < reasons().size(); ++i) {
      if (reasons()[i].number != static_cast<std::uint32_t>(slot.waits_for)) continue;
      ++counts[i];
      longest[i] = std::max(longest[i], seconds_of_wait(slot, state.now_ns));
    }
  };
  for_each_open(state, count);
  for_each_in(state, &pages::Process::listeners, count);
  const auto each_reason = [&](const auto& values) {
    for (std::size_t i = 0; i < reasons().size(); ++i) {
      if (static_cast<Wait>(reasons()[i].number) == Wait::kNothing) continue;
      out.add({{"reason", reasons()[i].text}}, values[i]);
    }
  };
  out.begin({.name = "beeline_waiting_connections",
             .help = "Connections that wait, by what they wait for."});
  each_reason(counts);
  out.begin({.name = "beeline_longest_wait_seconds",
             .help = "How long the connection that has waited longest has waited for this."});
  each_reason(longest);
}

struct PathCount {
  std::uint64_t up = 0;
  std::uint64_t down = 0;
  std::uint64_t moved = 0;
};

std::map<std::string_view, PathCount> count_paths(const State& state) {
  std::map<std::string_view, PathCount> counts;
  for_each_open(state, [&](const SlotView& slot) {
    if (slot.state != SlotState::kReady) return;  // the paths of a failed one are not made anew
    for (const PathView& path : slot.paths) {
      PathCount& count = counts[path.device];
      if (path.health == PathHealth::kUp) ++count.up;
      if (path.health == PathHealth::kDown) ++count.down;
      if (path.is_moved()) ++counts[path.own_device].moved;
    }
  });
  return counts;
}

void add_paths(Exposition& out, const State& state) {
  const auto& ports = state.totals.by_port();
  out.begin({.name = "beeline_paths",
             .help = "Paths of connections by this port. One that is down has failed, and is made "
                     "anew when it works. One that is moved is carried by another port, and counts "
                     "there as well."});
  auto counts = count_paths(state);
  for (const auto& [device, total] : ports) {
    const PathCount count = counts[device];
    out.add({{"device", device}, {"state", "up"}}, count.up);
    out.add({{"device", device}, {"state", "down"}}, count.down);
    out.add({{"device", device}, {"state", "moved"}}, count.moved);
  }
}

}  // namespace

void add_open_connections(Exposition& out, const State& state) {
  add_states(out, state);
  add_waits(out, state);
  add_paths(out, state);
}

}  // namespace beeline::exporter
