// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/timeline.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>

#include "common/base/result.h"

namespace beeline::replay {
namespace {

// `before`: the last look, or kWaits in place of kMoved if the connection has waited since.
Moved moved_between(const EventView& before, const EventView& now) {
  const auto ns = static_cast<std::int64_t>(now.time_ns - before.time_ns);
  return {.ns = before.event == Event::kMoved ? ns : std::min(ns, kNsPerSec),
          .messages = now.arg - before.arg,  // modulo 2^32
          .bytes = now.value - before.value};
}

void add_connection(std::vector<Entry>& entries, const SlotView& slot, Entry entry,
                    std::int64_t shift_ns) {
  const auto add = [&](const EventView& event) {
    entry.event = event;
    const auto place = [&](std::uint64_t ns) {
      return static_cast<std::int64_t>(ns + static_cast<std::uint64_t>(shift_ns));
    };
    entry.seen_ns = place(event.time_ns);
    const bool begins = event.event == Event::kWaits && event.value != 0;
    entry.unix_ns = place(begins ? std::min(event.value, event.time_ns) : event.time_ns);
    entries.push_back(entry);
  };
  std::uint64_t begin_ns = slot.opened_ns;
  for (const EventView& event : slot.life) {
    if (event.event == Event::kReady) begin_ns = event.time_ns;
    add(event);
  }
  // The first look of a connection that is younger than the ring counts from its beginning.
  std::optional<EventView> last;
  if (slot.looks.size() < BEELINE_STATS_LOOKS) {
    last = EventView{.time_ns = begin_ns, .event = Event::kMoved, .rail = 0, .arg = 0, .value = 0};
  }
  for (const EventView& event : slot.looks) {
    entry.moved.reset();
    if (event.event == Event::kMoved) {
      if (last) entry.moved = moved_between(*last, event);
      last = event;
    } else if (last) {
      // Looks that see nothing are not recorded: it has moved within the second before the next
      // one.
      last->event = event.event;
    }
    add(event);
  }
}

std::string path_text(const EventView& event) { return fmt::format("path {}", event.rail); }

}  // namespace

std::vector<Entry> timeline_of(std::span<const Recording> recordings,
                               std::span<const Placement> placements) {
  std::vector<Entry> entries;
  for (std::size_t p = 0; p < recordings.size(); ++p) {
    for (std::size_t c = 0; c < recordings[p].connections.size(); ++c) {
      add_connection(entries, recordings[p].connections[c], {.process = p, .connection = c},
                     placements[p].shift_ns);
    }
  }
  std::ranges::stable_sort(entries, {}, &Entry::unix_ns);
  return entries;
}

std::string name_of(const SlotView& connection, std::span<const Recording> recordings) {
  const Recording* const peer = peer_of(connection, recordings);
  std::string process = connection.peer_host;
  if (peer != nullptr) {
    process = peer->name();
  } else if (connection.peer_pid != 0) {  // it was connected
    process = fmt::format("pid {} on {}", connection.peer_pid, connection.peer_host);
  }
  return fmt::format("{} {} {}, {}", connection.device,
                     connection.role == SlotRole::kSend ? "to" : "from", process,
                     connection.peer_device);
}

std::string text_of(const Entry& entry) {
  const EventView& event = entry.event;
  const char* const name = beeline_stats_event_text(static_cast<std::uint32_t>(event.event));
  switch (event.event) {
    case Event::kReady:
      return fmt::format("ready, with {} path{}", event.arg, event.arg == 1 ? "" : "s");
    case Event::kTimedOut:
      return fmt::format("timed out after {:.1f} s", static_cast<double>(event.value) / 1e9);
    case Event::kCompletionError:
      return fmt::format("completion error on {}: status {}, vendor's {}", path_text(event),
                         event.arg, event.value);
    case Event::kPeerBye: return "the peer has closed its end";
    case Event::kPeerDied: return "the peer's process has ended";
    case Event::kFailed: return fmt::format("failed: {}", to_string(static_cast<Errc>(event.arg)));
    case Event::kTruncation:
      return fmt::format("a message of {} bytes was cut to {}", event.value, event.arg);
    case Event::kPathDown: return path_text(event) + " has failed";
    case Event::kPortDown: return "the port of " + path_text(event) + " went down at this end";
    case Event::kPathUp: return path_text(event) + " works again";
    case Event::kMoved:
      if (!entry.moved) return fmt::format("{} in all", bytes_text(event.value));
      return fmt::format("{} message{}, {} in {:.2f} s", entry.moved->messages,
                         entry.moved->messages == 1 ? "" : "s", bytes_text(entry.moved->bytes),
                         static_cast<double>(entry.moved->ns) / 1e9);
    case Event::kWaits:
      if (event.arg == static_cast<std::uint32_t>(Wait::kNothing)) return "waits no longer";
      return fmt::format("waits for {}", beeline_stats_wait_text(event.arg));
    case Event::kClosed: break;
  }
  return name;
}

std::string time_text(std::int64_t unix_ns) {
  unix_ns = std::max<std::int64_t>(unix_ns, 0);  // the page may say anything
  const auto whole = static_cast<std::time_t>(unix_ns / kNsPerSec);
  return fmt::format("{:%H:%M:%S}.{:06}", fmt::gmtime(whole), unix_ns % kNsPerSec / kNsPerUs);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace beeline::replay
