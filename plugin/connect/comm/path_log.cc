// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/comm/path_log.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "plugin/connect/socket/lock_without_sleeping.h"

namespace beeline {
namespace {

using Kind = PathNews::Kind;

// A place that has had no news for this time begins with short intervals between its lines again.
constexpr std::int64_t kCalmNs = 2 * PathLog::kGatherLongNs;

std::string time_text(std::int64_t ns) {
  char text[32];
  const double ms = static_cast<double>(ns) / kNsPerMs;
  if (ms < 10) {
    std::snprintf(text, sizeof text, "%.1f ms", ms);
  } else if (ms < 1000) {
    std::snprintf(text, sizeof text, "%.0f ms", ms);
  } else {
    std::snprintf(text, sizeof text, "%.1f s", ms / 1000);
  }
  return text;
}

std::string counted(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " connection" : " connections");
}

// "27 ms (median), 118 ms (longest)"
std::string times_text(std::vector<std::int64_t> times_ns) {
  std::ranges::sort(times_ns);
  if (times_ns.size() == 1) return time_text(times_ns.front());
  return time_text(times_ns[times_ns.size() / 2]) + " (median), " + time_text(times_ns.back()) +
         " (longest)";
}

// A part of the sentence about a place: "64 connections went over to nic1:1 in 27 ms".
std::string clause(Kind kind, std::size_t connections, const std::string& other,
                   const std::string& times) {
  const std::string who = counted(connections);
  const bool is_one = connections == 1;
  switch (kind) {
    case Kind::kLeft: return who + " went over to " + other + " in " + times;
    case Kind::kStopped:
      return who + (is_one ? " waits" : " wait") + ", because no other path works";
    case Kind::kStandsIn:
      return who + (is_one ? " goes" : " go") + " on over " + other + ", which stands in, after " +
             times;
    case Kind::kBack: return who + (is_one ? " uses" : " use") + " it again, after " + times;
    case Kind::kMoved: return who + " went back from " + other + " in " + times;
    case Kind::kMissing: return who + (is_one ? " was" : " were") + " made without";
    case Kind::kAdded:
      return who + (is_one ? ", made without it, uses" : ", made without it, use") +
             " it now, after " + times;
    case Kind::kStillWaits: break;
  }
  return {};
}

}  // namespace

void PathLog::Group::add(const PathNews& news) {
  connections.insert(news.connection);
  times_ns.push_back(news.ns);
  if (other.empty()) {
    other = news.other;
  } else if (other != news.other) {
    other = "other paths";
  }
}

std::int64_t PathLog::Place::due_ns() const noexcept {
  if (since_ns == 0) return kNever;
  return since_ns + (lines_in_a_row < kLinesInARow ? kGatherNs : kGatherLongNs);
}

bool PathLog::Place::has_only_returns() const {
  return downs == 0 && groups.size() == 1 && groups.begin()->first == Kind::kBack;
}

void PathLog::Place::clear(std::int64_t now_ns) {
  since_ns = 0;
  what.clear();
  port_is.clear();
  downs = 0;
  is_held = false;
  groups.clear();
  logged_ns = now_ns;
}

PathLog::Place& PathLog::place_of(const std::string& name, std::int64_t now_ns) {
  Place& place = places_[name];
  if (place.since_ns != 0) return place;
  place.since_ns = now_ns;
  if (now_ns - place.logged_ns < kCalmNs && place.logged_ns != 0) return place;
  place.lines_in_a_row = 0;
  place.has_said_held = false;
  return place;
}

void PathLog::add(const PathNews& news, std::int64_t now_ns) noexcept {
  try {
    const auto lock = lock_without_sleeping(mutex_);
    if (news.kind == Kind::kStillWaits) {
      Outage& outage = outages_[news.what];
      if (outage.since_ns == 0) outage.since_ns = now_ns;
      outage.group.add(news);
    } else {
      Place& place = place_of(news.place, now_ns);
      place.groups[news.kind].add(news);
      if (!news.what.empty()) place.what = news.what;
      place.is_held = place.is_held || news.is_held;
    }
    note_due_locked();
  } catch (const std::exception&) {
    // Out of memory: the connection has logged its news by itself, at level INFO.
  }
}

void PathLog::add(const PortNews& news, std::int64_t now_ns) noexcept {
  try {
    const auto lock = lock_without_sleeping(mutex_);
    Place& place = place_of(news.place, now_ns);
    if (news.kind == PortNews::Kind::kDown) {
      ++place.downs;
      if (place.what.empty()) place.what = news.what;  // a connection knows more
      place.port_is.clear();
    } else {
      place.port_is = news.what;
    }
    note_due_locked();
  } catch (const std::exception&) {
    // Likewise.
  }
}

void PathLog::add_end(const std::string& peer, const std::string& line,
                      std::int64_t now_ns) noexcept {
  bool is_first = true;
  try {
    const auto lock = lock_without_sleeping(mutex_);
    Ended& ended = ended_[peer];
    is_first = ended.since_ns == 0;
    if (is_first) {
      ended.since_ns = now_ns;
    } else {
      ++ended.more;
    }
    note_due_locked();
  } catch (const std::exception&) {
    // Out of memory: it is logged as the first.
  }
  if (!is_first) {
    BL_INFO(kLogNet, "%s", line.c_str());
    return;
  }
  flush(now_ns);
  BL_WARN("%s", line.c_str());
}

void PathLog::note_due_locked() noexcept {
  std::int64_t due = kNever;
  for (const auto& [name, place] : places_) due = std::min(due, place.due_ns());
  for (const auto& [what, outage] : outages_) due = std::min(due, outage.since_ns + kGatherNs);
  for (const auto& [peer, ended] : ended_) due = std::min(due, ended.since_ns + kGatherNs);
  due_ns_.store(due, std::memory_order_relaxed);
}

void PathLog::log_until(std::int64_t due_ns, std::int64_t now_ns) noexcept {
  if (due_ns_.load(std::memory_order_relaxed) > due_ns) return;
  try {
    std::vector<std::string> lines;
    {
      const auto lock = lock_without_sleeping(mutex_);
      // What happens at almost the same time is told together.
      const std::int64_t soon_ns = std::min(due_ns, kNever - kGatherNs) + kGatherNs / 2;
      take_places_locked(soon_ns, now_ns, lines);
      take_outages_locked(soon_ns, lines);
      take_ended_locked(now_ns, lines);
      note_due_locked();
    }
    for (const std::string& line : lines) BL_WARN("%s", line.c_str());
  } catch (const std::exception&) {
    // Out of memory: the news stay, or are lost.
  }
}

// "port nic0:1 of this host went DOWN 3 times in 1.0 s: 64 connections went over to nic1:1 in ..."
std::string PathLog::line_about(const std::string& name, const Place& place, std::int64_t now_ns) {
  std::string line = name;
  if (!place.what.empty()) {
    line += place.what;
    if (place.downs > 1)
      line += " " + std::to_string(place.downs) + " times in " + time_text(now_ns - place.since_ns);
    if (!place.port_is.empty()) line += ", and" + place.port_is;
  } else {
    line += !place.port_is.empty()                   ? place.port_is
            : place.groups.contains(Kind::kStandsIn) ? " does not work yet"
            : place.groups.contains(Kind::kMissing)  ? " cannot be made now"
            : place.groups.contains(Kind::kAdded)    ? " works"
                                                     : " works again";
  }
  const char* before = ": ";
  for (const auto& [kind, group] : place.groups) {
    line += std::exchange(before, "; ") +
            clause(kind, group.connections.size(), group.other, times_text(group.times_ns));
  }
  return line;
}

// Places that only work again share one line.
void PathLog::take_places_locked(std::int64_t due_ns, std::int64_t now_ns,
                                 std::vector<std::string>& lines) {
  std::string returned;
  std::size_t returned_places = 0;
  Group returning;
  std::size_t more = 0;
  for (auto& [name, place] : places_) {
    if (place.due_ns() == kNever || place.due_ns() > due_ns) continue;
    if (place.has_only_returns() && returned_places < kMostPlaces) {
      returned += (++returned_places == 1 ? "" : ", ") + name;
      Group& group = place.groups.begin()->second;
      returning.connections.merge(group.connections);
      returning.times_ns.insert(returning.times_ns.end(), group.times_ns.begin(),
                                group.times_ns.end());
    } else if (lines.size() < kMostPlaces) {
      std::string line = line_about(name, place, now_ns);
      if (place.is_held && !std::exchange(place.has_said_held, true)) {
        line +=
            ". It fails often, so connections that have another path use it again later each "
            "time, after up to 30 s";
      }
      lines.push_back(std::move(line));
    } else {
      ++more;
    }
    ++place.lines_in_a_row;
    place.clear(now_ns);
  }
  if (returned_places != 0) {
    const std::size_t count = returning.connections.size();
    lines.push_back(returned + (returned_places == 1 ? " works" : " work") +
                    " again: " + counted(count) + (count == 1 ? " uses " : " use ") +
                    (returned_places == 1 ? "it" : "them") + " again, after " +
                    times_text(std::move(returning.times_ns)));
  }
  if (more != 0) {
    lines.push_back("paths at " + std::to_string(more) +
                    " more places have failed or work again; a log at level INFO names them");
  }
  std::erase_if(places_, [&](const auto& entry) {
    return entry.second.since_ns == 0 && now_ns - entry.second.logged_ns > kCalmNs;
  });
}

void PathLog::take_outages_locked(std::int64_t due_ns, std::vector<std::string>& lines) {
  std::erase_if(outages_, [&](const auto& entry) {
    const auto& [what, outage] = entry;
    if (outage.since_ns + kGatherNs > due_ns) return false;
    const std::size_t count = outage.group.connections.size();
    lines.push_back(counted(count) + (count == 1 ? " has" : " have") + " waited for " +
                    time_text(*std::ranges::max_element(outage.group.times_ns)) +
                    ", because no path works: " + what);
    return true;
  });
}

void PathLog::take_ended_locked(std::int64_t now_ns, std::vector<std::string>& lines) {
  std::erase_if(ended_, [&](const auto& entry) {
    const auto& [peer, ended] = entry;
    if (ended.since_ns + kGatherNs > now_ns) return false;
    if (ended.more != 0) {
      lines.push_back(counted(ended.more) + " more with " + peer +
                      (ended.more == 1 ? " has" : " have") +
                      " ended with an error since; a log at level INFO has each reason");
    }
    return true;
  });
}

}  // namespace beeline
