// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tools/cli/text_width.h"
#include "tools/replay/messages.h"

namespace beeline::replay {
namespace {

// Of the runs of messages of one size. More are rarely of use, and the trace has all of them.
constexpr std::size_t kMostRuns = 6;
constexpr std::size_t kTimeColumns = 17;  // with two blanks behind it

const SlotView& slot_of(const Entry& entry, const Story& story) {
  return story.recordings[entry.process].connections[entry.connection];
}

std::string date_of(std::int64_t unix_ns) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(unix_ns / kNsPerSec)));
}

std::string heading(const Story& story) {
  if (story.timeline.empty()) return {};
  std::string text =
      fmt::format("Times are UTC, {}, by the clock of {}\n",
                  date_of(story.timeline.front().unix_ns), story.recordings.front().host);
  for (std::size_t i = 1; i < story.placements.size(); ++i) {
    const Recording& one = story.recordings[i];
    if (one.host == story.recordings.front().host) continue;
    const std::optional<std::int64_t> error = story.placements[i].error_ns;
    text += error ? fmt::format("  {}: within {:.0f} us, as its connections have measured\n",
                                one.name(), static_cast<double>(*error) / 1e3)
                  : fmt::format("  {}: by its own clock, which was not compared\n", one.name());
  }
  return text + "\n";
}

std::string title_of(const SlotView& slot, const Story& story) {
  const std::string state = fmt::format(
      "{}: {} messages, {}; {} completions, {} buffers granted",
      beeline_stats_state_text(static_cast<std::uint32_t>(slot.state)), slot[Counter::kMessages],
      bytes_text(slot[Counter::kBytes]), slot[Counter::kCompletions], slot[Counter::kGrants]);
  std::string text =
      fmt::format("  {}\n    {}\n", tools::wrapped(name_of(slot, story.recordings), 4, story.width),
                  tools::wrapped(state, 6, story.width));
  for (const PathView& path : slot.paths) {
    if (slot.paths.size() == 1 && path.failures == 0) break;
    text += fmt::format(
        "    path {}: {}, {}, failed {} times\n", path.own_device,
        path.is_moved() ? path.device + " stands in"
                        : beeline_stats_path_state_text(static_cast<std::uint32_t>(path.health)),
        bytes_text(path.bytes), path.failures);
  }
  return text;
}

std::string messages_of(const SlotView& slot) {
  std::vector<MessageRun> runs = last_messages(slot);
  if (runs.empty()) return {};
  const std::size_t left_out = runs.size() - std::min(runs.size(), kMostRuns);
  runs.erase(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(left_out));
  std::string text;
  for (const MessageRun& run : runs) text += fmt::format("    {}\n", text_of(run));
  return text;
}

}  // namespace

std::string text_by_connection(const Story& story) {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<const Entry*>> entries;
  for (const Entry& entry : story.timeline) {
    entries[{entry.process, entry.connection}].push_back(&entry);
  }
  std::string text = heading(story);
  for (std::size_t p = 0; p < story.recordings.size(); ++p) {
    const Recording& recording = story.recordings[p];
    text +=
        fmt::format("{}{}, version {}\n", p == 0 ? "" : "\n", recording.name(), recording.build);
    if (recording.alive_ns != 0) {
      text += fmt::format("  last seen to run at {}, to about a second\n",
                          time_text(recording.alive_ns + story.placements[p].shift_ns));
    }
    for (std::size_t c = 0; c < recording.connections.size(); ++c) {
      text += title_of(recording.connections[c], story);
      for (const Entry* const entry : entries[{p, c}]) {
        text += fmt::format("    {}  {}\n", time_text(entry->unix_ns),
                            tools::wrapped(text_of(*entry), 4 + kTimeColumns, story.width));
      }
      text += messages_of(recording.connections[c]);
    }
  }
  return text;
}

std::string text_by_time(const Story& story) {
  std::string text = heading(story);
  for (const Entry& entry : story.timeline) {
    const Recording& recording = story.recordings[entry.process];
    const SlotView& slot = slot_of(entry, story);
    const Recording* const peer = peer_of(slot, story.recordings);
    const std::string peer_name = peer != nullptr
                                      ? peer->short_name()
                                      : fmt::format("{}:{}", slot.peer_host, slot.peer_device);
    const std::string line =
        fmt::format("{:<8} {} {} {:<8}  {}", recording.short_name(), slot.device,
                    slot.role == SlotRole::kSend ? "->" : "<-", peer_name, text_of(entry));
    text += fmt::format("{}  {}\n", time_text(entry.unix_ns),
                        tools::wrapped(line, kTimeColumns, story.width));
  }
  return text;
}

std::string json_lines(const Story& story) {
  using Json = nlohmann::ordered_json;
  std::string text;
  for (const Entry& entry : story.timeline) {
    const Recording& recording = story.recordings[entry.process];
    const SlotView& slot = slot_of(entry, story);
    const auto number = static_cast<std::uint32_t>(entry.event.event);
    Json json = {{"unix_ns", entry.unix_ns}, {"host", recording.host}, {"pid", recording.pid}};
    if (recording.rank) json["rank"] = *recording.rank;
    json["connection"] = slot.id;
    json["role"] = beeline_stats_role_text(static_cast<std::uint32_t>(slot.role));
    json["device"] = slot.device;
    json["peer_host"] = slot.peer_host;
    json["peer_pid"] = slot.peer_pid;
    json["peer_device"] = slot.peer_device;
    json["event"] = beeline_stats_event_text(number);
    json["text"] = text_of(entry);
    if (entry.moved) {
      json["messages"] = entry.moved->messages;
      json["bytes"] = entry.moved->bytes;
      json["seconds"] = static_cast<double>(entry.moved->ns) / 1e9;
    }
    text += json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return text;
}

}  // namespace beeline::replay
