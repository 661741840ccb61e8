// SPDX-License-Identifier: Apache-2.0
//
// One line of the log for what happens to many connections at once. When a port fails, each of
// hundreds of connections has news; each says so at level INFO by itself. This object gathers the
// news of a process by the place of the cause, and logs one warning for a place and second: what
// happened, to how many connections, and how long it took. If a place has news second after second,
// as when a link flaps, the next lines about it follow after ten seconds.
//
// Threads: a mutex, under which nothing is logged. The control thread calls look().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "plugin/connect/comm/path_news.h"

namespace beeline {

class PathLog {
 public:
  static constexpr std::int64_t kNever = INT64_MAX;
  // The news about a place that come within this time go into one line.
  static constexpr std::int64_t kGatherNs = 1'000'000'000;
  // The same for a place that has had kLinesInARow lines, each soon after the one before.
  static constexpr std::int64_t kGatherLongNs = 10 * kGatherNs;
  static constexpr int kLinesInARow = 3;
  // So many places have a line of their own at a time. The others are only counted.
  static constexpr std::size_t kMostPlaces = 8;

  void add(const PathNews& news, std::int64_t now_ns) noexcept;
  void add(const PortNews& news, std::int64_t now_ns) noexcept;
  // A connection to the peer has ended with an error. The first is a warning at once, because the
  // process may end soon; of others that follow within kGatherNs, the next lines tell the number.
  void add_end(const std::string& peer, const std::string& line, std::int64_t now_ns) noexcept;

  // When look() has something to log.
  std::int64_t due_ns() const noexcept { return due_ns_.load(std::memory_order_relaxed); }
  void look(std::int64_t now_ns) noexcept { log_until(now_ns, now_ns); }
  // Logs all that was gathered, also what is not due.
  void flush(std::int64_t now_ns) noexcept { log_until(kNever, now_ns); }

 private:
  // Connections to which the same happened, and the times.
  struct Group {
    std::set<const void*> connections;
    std::vector<std::int64_t> times_ns;
    std::string other;  // "other paths" if they differ

    void add(const PathNews& news);
  };
  struct Place {
    std::int64_t since_ns = 0;  // when the first of these news came; 0: there are none
    std::string what;           // the last failure
    std::string port_is;        // the last news of the port, if it works
    int downs = 0;
    bool is_held = false;
    std::map<PathNews::Kind, Group> groups;
    // Since the last line:
    std::int64_t logged_ns = 0;
    int lines_in_a_row = 0;
    bool has_said_held = false;

    std::int64_t due_ns() const noexcept;
    bool has_only_returns() const;
    void clear(std::int64_t now_ns);
  };
  struct Outage {
    std::int64_t since_ns = 0;  // when the first connection reported it
    Group group;
  };
  struct Ended {
    std::int64_t since_ns = 0;
    std::size_t more = 0;  // after the first
  };

  Place& place_of(const std::string& name, std::int64_t now_ns);
  void log_until(std::int64_t due_ns, std::int64_t now_ns) noexcept;
  // These append the lines that are due, and forget what the lines say.
  void take_places_locked(std::int64_t due_ns, std::int64_t now_ns,
                          std::vector<std::string>& lines);
  void take_outages_locked(std::int64_t due_ns, std::vector<std::string>& lines);
  void take_ended_locked(std::int64_t now_ns, std::vector<std::string>& lines);
  void note_due_locked() noexcept;
  static std::string line_about(const std::string& name, const Place& place, std::int64_t now_ns);

  std::atomic<std::int64_t> due_ns_{kNever};
  std::mutex mutex_;
  // Under the mutex:
  std::map<std::string, Place> places_;
  std::map<std::string, Outage> outages_;  // by PathNews::what
  std::map<std::string, Ended> ended_;     // by peer
};

}  // namespace beeline
