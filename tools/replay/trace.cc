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

constexpr std::size_t kMostConnections = 100'000;  // of a process: more than a page has

// Times in the trace count from its first event, since a double does not hold unix time exactly.
class Trace {
 public:
  explicit Trace(const Story& story) : story_(story) {
    if (!story.timeline.empty()) {
      start_ns_ = story.timeline.front().unix_ns;
      for (const Entry& entry : story.timeline) {
        end_ns_ = std::max(end_ns_, entry.seen_ns);
        if (entry.moved) start_ns_ = std::min(start_ns_, entry.unix_ns - entry.moved->ns);
      }
    }
  }

  std::string text() {
    name_rows();
    for (const Entry& entry : story_.timeline) add(entry);
    for (const auto& [row, wait] : waits_) {
      add_wait(row, wait, end_ns_);
      last_ns_[row] = end_ns_;
    }
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

  // Numbers of processes on different hosts may be the same, so the trace has numbers of its own. A
  // viewer takes a thread whose number is that of its process for the main thread.
  Json event(const char* phase, std::string name, const Row& row) const {
    const std::size_t process = row.first + 1;
    return {{"ph", phase},
            {"name", std::move(name)},
            {"pid", process},
            {"tid", process * kMostConnections + row.second + 1}};
  }

  void describe(const char* what, const char* key, Json value, const Row& row) {
    Json metadata = event("M", what, row);
    metadata["args"] = {{key, std::move(value)}};
    events_.push_back(std::move(metadata));
  }

  // Viewers show about 28 characters of a name.
  std::string row_name(const SlotView& slot) const {
    const Recording* const peer = peer_of(slot, story_.recordings);
    return fmt::format("{} {} ({})", slot.role == SlotRole::kSend ? "to" : "from",
                       peer != nullptr ? peer->short_name()
                                       : fmt::format("{}:{}", slot.peer_host, slot.peer_device),
                       slot.device);
  }

  void name_rows() {
    for (std::size_t p = 0; p < story_.recordings.size(); ++p) {
      const Recording& recording = story_.recordings[p];
      describe("process_name", "name", recording.name(), {p, 0});
      describe("process_sort_index", "sort_index", recording.rank.value_or(p), {p, 0});
      for (std::size_t c = 0; c < recording.connections.size(); ++c) {
        const bool receives = recording.connections[c].role == SlotRole::kReceive;
        describe("thread_name", "name", row_name(recording.connections[c]), {p, c});
        describe("thread_sort_index", "sort_index", (receives ? kMostConnections : 0) + c, {p, c});
      }
    }
  }

  // A slice that touches the next one or an instant is drawn within it. So it is shorter by a
  // nanosecond at each end.
  void add_slice(std::string name, const Row& row, std::int64_t from_ns, std::int64_t to_ns,
                 Json args) {
    if (to_ns - from_ns <= 2) return;
    Json slice = event("X", std::move(name), row);
    slice["ts"] = us(from_ns + 1);
    slice["dur"] = static_cast<double>(to_ns - from_ns - 2) / 1e3;
    slice["args"] = std::move(args);
    events_.push_back(std::move(slice));
  }

  void add_wait(const Row& row, const OpenWait& wait, std::int64_t to_ns) {
    add_slice(wait.name, row, wait.since_ns, to_ns, {{"open_requests", wait.requests}});
  }

  void add(const Entry& entry) {
    const Row row = {entry.process, entry.connection};
    last_ns_[row] = entry.seen_ns;
    const bool is_wait = entry.event.event == Event::kWaits;
    if (is_wait || entry.event.event == Event::kMoved || entry.event.event == Event::kClosed) {
      const std::int64_t moving_ns = entry.moved ? entry.moved->ns : 0;
      if (auto wait = waits_.extract(row)) add_wait(row, wait.mapped(), entry.unix_ns - moving_ns);
    }
    if (is_wait) {
      if (entry.event.arg == static_cast<std::uint32_t>(Wait::kNothing)) return;
      waits_[row] = {
          .since_ns = entry.unix_ns, .name = text_of(entry), .requests = entry.event.rail};
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
    const double seconds = static_cast<double>(std::max<std::int64_t>(moved.ns, 1)) / 1e9;
    const auto rate = static_cast<std::uint64_t>(static_cast<double>(moved.bytes) / seconds);
    add_slice(fmt::format("{} ({}/s)", bytes_text(moved.bytes), bytes_text(rate)), row,
              entry.unix_ns - moved.ns, entry.unix_ns,
              {{"messages", moved.messages}, {"bytes", moved.bytes}});
  }

  // What was under way when the connection was last seen to do anything.
  void add_last(std::size_t process, std::size_t connection) {
    const Row row = {process, connection};
    Json runs = Json::array();
    for (const MessageRun& run : last_messages(slot(row))) runs.push_back(text_of(run));
    if (runs.empty()) return;
    Json instant = event("i", "last messages", row);
    instant["ts"] = us(last_ns_[row] + kNsPerUs);
    instant["s"] = "t";
    instant["args"] = {{"last_messages", std::move(runs)}};
    events_.push_back(std::move(instant));
  }

  const Story& story_;
  std::int64_t start_ns_ = 0;
  std::int64_t end_ns_ = 0;
  std::map<Row, OpenWait> waits_;
  std::map<Row, std::int64_t> last_ns_;  // the last event of each
  Json events_ = Json::array();
};

}  // namespace

std::string trace_of(const Story& story) { return Trace(story).text(); }

}  // namespace beeline::replay
