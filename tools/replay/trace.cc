// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/replay/messages.h"

namespace beeline::replay {
namespace {

using Json = nlohmann::ordered_json;

// Times in the trace count from its first event, since a double does not hold unix time exactly.
class Trace {
 public:
  explicit Trace(const Story& story) : story_(story) {
    if (!story.timeline.empty()) {
      start_ns_ = story.timeline.front().unix_ns;
      for (const Entry& entry : story.timeline) {
        if (entry.moved) start_ns_ = std::min(start_ns_, entry.unix_ns - entry.moved->ns);
      }
      end_ns_ = story.timeline.back().unix_ns;
    }
  }

  std::string text() {
    name_rows();
    for (const Entry& entry : story_.timeline) add(entry);
    for (const auto& [row, wait] : waits_) add_wait(row, wait, end_ns_);
    for (std::size_t p = 0; p < story_.recordings.size(); ++p) {
      for (std::size_t c = 0; c < story_.recordings[p].connections.size(); ++c) add_last(p, c);
    }
    const Json document = {
        {"displayTimeUnit", "ms"},
        {"otherData", {{"start_unix_ns", std::to_string(start_ns_)}}},
        {"traceEvents", std::move(events_)},
    };
    return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  using Row = std::pair<std::size_t, std::size_t>;  // process and connection
  struct OpenWait {
    std::int64_t since_ns = 0;
    std::string name;
    std::uint64_t requests = 0;
  };

  double us(std::int64_t unix_ns) const { return static_cast<double>(unix_ns - start_ns_) / 1e3; }

  const SlotView& slot(const Row& row) const {
    return story_.recordings[row.first].connections[row.second];
  }

  // Viewers take numbers of processes and threads as keys: those of hosts may be the same.
  Json event(const char* phase, std::string name, const Row& row) const {
    return {
        {"ph", phase}, {"name", std::move(name)}, {"pid", row.first + 1}, {"tid", row.second + 1}};
  }

  void name_rows() {
    for (std::size_t p = 0; p < story_.recordings.size(); ++p) {
      Json process = event("M", "process_name", {p, 0});
      process["args"] = {{"name", story_.recordings[p].name()}};
      events_.push_back(std::move(process));
      for (std::size_t c = 0; c < story_.recordings[p].connections.size(); ++c) {
        Json thread = event("M", "thread_name", {p, c});
        thread["args"] = {{"name", name_of(slot({p, c}), story_.recordings)}};
        events_.push_back(std::move(thread));
      }
    }
  }

  void add_slice(std::string name, const Row& row, std::int64_t from_ns, std::int64_t to_ns,
                 Json args) {
    Json slice = event("X", std::move(name), row);
    slice["ts"] = us(from_ns);
    slice["dur"] = static_cast<double>(std::max<std::int64_t>(to_ns - from_ns, 0)) / 1e3;
    slice["args"] = std::move(args);
    events_.push_back(std::move(slice));
  }

  void add_wait(const Row& row, const OpenWait& wait, std::int64_t to_ns) {
    add_slice(wait.name, row, wait.since_ns, to_ns, {{"open_requests", wait.requests}});
  }

  void add(const Entry& entry) {
    const Row row = {entry.process, entry.connection};
    const bool is_wait = entry.event.event == Event::kWaits;
    if (is_wait || entry.event.event == Event::kMoved || entry.event.event == Event::kClosed) {
      if (auto wait = waits_.extract(row)) add_wait(row, wait.mapped(), entry.unix_ns);
    }
    if (is_wait) {
      if (entry.event.arg == static_cast<std::uint32_t>(Wait::kNothing)) return;
      waits_[row] = {
          .since_ns = entry.unix_ns, .name = text_of(entry), .requests = entry.event.value};
      return;
    }
    if (entry.event.event == Event::kMoved) {
      if (entry.moved) add_moved(row, entry);
      return;
    }
    Json instant = event("i", text_of(entry), row);
    instant["ts"] = us(entry.unix_ns);
    instant["s"] = "t";
    events_.push_back(std::move(instant));
  }

  void add_moved(const Row& row, const Entry& entry) {
    const Moved& moved = *entry.moved;
    const double seconds = static_cast<double>(moved.ns) / 1e9;
    const double rate = seconds > 0 ? static_cast<double>(moved.bytes) / 1e9 / seconds : 0;
    add_slice(fmt::format("{}, {:.2f} GB/s", bytes_text(moved.bytes), rate), row,
              entry.unix_ns - moved.ns, entry.unix_ns,
              {{"messages", moved.messages}, {"bytes", moved.bytes}});
  }

  // What was under way at the end.
  void add_last(std::size_t process, std::size_t connection) {
    const Row row = {process, connection};
    Json runs = Json::array();
    for (const MessageRun& run : last_messages(slot(row))) runs.push_back(text_of(run));
    if (runs.empty()) return;
    Json instant = event("i", "last messages", row);
    instant["ts"] = us(end_ns_);
    instant["s"] = "t";
    instant["args"] = {{"messages", std::move(runs)}};
    events_.push_back(std::move(instant));
  }

  const Story& story_;
  std::int64_t start_ns_ = 0;
  std::int64_t end_ns_ = 0;
  std::map<Row, OpenWait> waits_;
  Json events_ = Json::array();
};

}  // namespace

std::string trace_of(const Story& story) { return Trace(story).text(); }

}  // namespace beeline::replay
