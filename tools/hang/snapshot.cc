// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "common/base/whole_file.h"
#include "tools/cli/shallow_json.h"
#include "tools/hang/words.h"

namespace beeline::hang {
namespace {

using Json = nlohmann::ordered_json;
using pages::Life;

constexpr std::string_view kKind = "beeline-hang";
constexpr int kSnapshotVersion = 2;
// A connection takes half a KiB.
constexpr std::size_t kMostSnapshotBytes = std::size_t{256} << 20;
constexpr int kMostDeep = 10;                       // of what is inside of what
constexpr std::size_t kMostUnreadable = 1'000'000;  // pages that a file may claim
// Those by which a cause is found, and their names in the file.
constexpr std::array kCounters = {std::pair(Counter::kMessages, "messages"),
                                  std::pair(Counter::kGrants, "grants")};
constexpr std::array kLives = {std::pair(Life::kRuns, "runs"), std::pair(Life::kStopped, "stopped"),
                               std::pair(Life::kEnded, "ended")};

// 0 stands for never.
std::uint64_t ago(std::uint64_t time_ns, std::int64_t now_ns) {
  const auto now = static_cast<std::uint64_t>(now_ns);
  return time_ns == 0 || time_ns > now ? 0 : std::max<std::uint64_t>(now - time_ns, 1);
}

std::uint64_t time_from(std::uint64_t ago_ns, std::int64_t now_ns) {
  const auto now = static_cast<std::uint64_t>(now_ns);
  return ago_ns == 0 || ago_ns >= now ? 0 : now - ago_ns;
}

Json slot_json(const SlotView& slot, std::int64_t now_ns) {
  Json json = {{"number", slot.number},
               {"role", static_cast<std::uint32_t>(slot.role)},
               {"state", static_cast<std::uint32_t>(slot.state)},
               {"device", slot.device},
               {"peer_host", slot.peer_host},
               {"peer_pid", slot.peer_pid},
               {"peer_device", slot.peer_device},
               {"peer_number", slot.peer_number},
               {"peer_identity", slot.peer_identity},
               {"waits_for", static_cast<std::uint32_t>(slot.waits_for)},
               {"waits_ns", ago(slot.waits_since_ns, now_ns)},
               {"requests", slot.requests},
               {"moved_ns_ago", ago(slot.moved_ns, now_ns)},
               {"opened_ns_ago", ago(slot.opened_ns, now_ns)},
               {"closed_ns_ago", ago(slot.closed_ns, now_ns)}};
  for (const auto& [counter, name] : kCounters) json[name] = slot[counter];
  if (const auto ports = names_of_ports_down(slot); !ports.empty()) json["ports_down"] = ports;
  for (const EventView& event : slot.life) {
    if (event.event == Event::kPeerDied) json["peer_died_ns_ago"] = ago(event.time_ns, now_ns);
    if (event.event != Event::kFailed) continue;
    json["failure"] = {
        {"kind", event.arg}, {"errno", event.value}, {"ns_ago", ago(event.time_ns, now_ns)}};
  }
  return json;
}

// The file may come from anybody. Bytes that could control a terminal become question marks.
std::string text_from(const Json& json) {
  auto text = json.get<std::string>();
  std::ranges::replace_if(
      text, [](char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return text;
}

SlotView slot_from(const Json& json, std::int64_t now_ns) {
  SlotView slot = {};
  slot.number = json.at("number");
  slot.role = static_cast<SlotRole>(json.at("role").get<std::uint32_t>());
  slot.state = static_cast<SlotState>(json.at("state").get<std::uint32_t>());
  slot.device = text_from(json.at("device"));
  slot.peer_host = text_from(json.at("peer_host"));
  slot.peer_pid = json.at("peer_pid");
  slot.peer_device = text_from(json.at("peer_device"));
  slot.peer_number = json.at("peer_number");
  slot.peer_identity = json.at("peer_identity");
  slot.waits_for = static_cast<Wait>(json.at("waits_for").get<std::uint32_t>());
  slot.waits_since_ns = time_from(json.at("waits_ns"), now_ns);
  slot.requests = json.at("requests");
  slot.moved_ns = time_from(json.at("moved_ns_ago"), now_ns);
  slot.opened_ns = time_from(json.at("opened_ns_ago"), now_ns);
  slot.closed_ns = time_from(json.at("closed_ns_ago"), now_ns);
  for (const auto& [counter, name] : kCounters) {
    slot.counters[static_cast<std::uint32_t>(counter)] = json.at(name);
  }
  if (json.contains("ports_down")) {
    for (const Json& port : json["ports_down"]) {
      slot.life.push_back({.time_ns = 0,
                           .event = Event::kPortDown,
                           .rail = static_cast<std::uint16_t>(slot.paths.size()),
                           .arg = 0,
                           .value = 0});
      slot.paths.push_back({.health = PathHealth::kDown,
                            .bytes = 0,
                            .failures = 0,
                            .device = text_from(port),
                            .own_device = text_from(port)});
    }
  }
  if (json.contains("peer_died_ns_ago")) {
    slot.life.push_back({.time_ns = time_from(json["peer_died_ns_ago"], now_ns),
                         .event = Event::kPeerDied,
                         .rail = 0,
                         .arg = 0,
                         .value = 0});
  }
  if (json.contains("failure")) {
    const Json& failure = json["failure"];
    slot.life.push_back({.time_ns = time_from(failure.at("ns_ago"), now_ns),
                         .event = Event::kFailed,
                         .rail = 0,
                         .arg = failure.at("kind"),
                         .value = failure.at("errno")});
  }
  return slot;
}

// The lists of a process, by their names in the file.
constexpr std::array kLists = {std::pair("connections", &pages::Process::connections),
                               std::pair("listeners", &pages::Process::listeners),
                               std::pair("failed", &pages::Process::failed)};

Life life_from(const std::string& text) {
  for (const auto& [life, name] : kLives) {
    if (text == name) return life;
  }
  throw std::runtime_error("no process " + text);
}

pages::Process process_from(const Json& json, std::int64_t now_ns) {
  pages::Process process;
  process.pid = json.at("pid");
  process.host = text_from(json.at("host"));
  process.life = life_from(json.at("life"));
  if (json.contains("rank")) process.rank = json["rank"].get<std::uint32_t>();
  if (json.contains("ranks")) process.ranks = json["ranks"].get<std::uint32_t>();
  process.job = text_from(json.at("job"));
  process.blocked_threads = json.at("blocked_threads");
  process.identity = json.at("identity");
  process.slots_refused = json.at("slots_refused");
  for (const auto& [name, list] : kLists) {
    for (const Json& slot : json.at(name)) (process.*list).push_back(slot_from(slot, now_ns));
  }
  return process;
}

}  // namespace

std::string snapshot_of(const pages::Processes& processes, std::int64_t now_ns) {
  Json document = {{"kind", kKind},
                   {"version", kSnapshotVersion},
                   {"unreadable", processes.left_out.count()},
                   {"processes", Json::array()}};
  for (const pages::Process& process : processes.all) {
    Json json = {{"pid", process.pid}, {"host", process.host}};
    for (const auto& [life, name] : kLives) {
      if (process.life == life) json["life"] = name;
    }
    if (process.rank) json["rank"] = *process.rank;
    if (process.ranks) json["ranks"] = *process.ranks;
    json["job"] = process.job;
    json["blocked_threads"] = process.blocked_threads;
    json["identity"] = process.identity;
    json["slots_refused"] = process.slots_refused;
    for (const auto& [name, list] : kLists) {
      json[name] = Json::array();
      for (const SlotView& slot : process.*list) json[name].push_back(slot_json(slot, now_ns));
    }
    document["processes"].push_back(std::move(json));
  }
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Outcome<pages::Processes> read_snapshot(const std::string& path, std::int64_t now_ns) {
  const std::string text = BL_TRY(read_whole_file(path, kMostSnapshotBytes));
  try {
    const Json document = Json::parse(text, tools::AtMostDeep{kMostDeep});
    if (document.at("kind") != kKind || document.at("version") != kSnapshotVersion) {
      throw std::runtime_error("another kind of file, or another version");
    }
    pages::Processes processes;
    const std::size_t unreadable = document.at("unreadable");
    if (unreadable > kMostUnreadable) throw std::runtime_error("more unreadable pages than fit");
    if (unreadable != 0) processes.left_out.owners[pages::Reason::kElsewhere].resize(unreadable);
    for (const Json& process : document.at("processes")) {
      processes.all.push_back(process_from(process, now_ns));
    }
    return processes;
  } catch (const std::exception& error) {
    return fail(
        fmt::format("{} is not a file that this version of beeline hang --save has written: {}",
                    path, error.what()));
  }
}

}  // namespace beeline::hang
