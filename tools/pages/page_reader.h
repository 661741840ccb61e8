// SPDX-License-Identifier: Apache-2.0
//
// Reads another process's statistics page, alive or dead, and believes nothing that it has not
// checked.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/result.h"
#include "include/beeline/stats_page.h"
#include "plugin/stats/words.h"

namespace beeline {

struct EventView {
  std::uint64_t time_ns;
  Event event;
  std::uint16_t rail;
  std::uint32_t arg;
  std::uint64_t value;
};

struct PathView {
  PathHealth health;
  std::uint64_t bytes;
  std::uint32_t failures;
  std::string device;      // that carries it
  std::string own_device;  // in whose place, if it is another

  bool is_moved() const noexcept { return device != own_device; }
};

// A copy of one connection.
struct SlotView {
  std::uint64_t id;
  SlotState state;
  SlotRole role;
  std::uint64_t opened_ns;
  std::uint64_t closed_ns;  // 0: open
  std::uint64_t counters[BEELINE_STATS_COUNTER_COUNT];
  std::string device;
  std::string peer_host;
  std::string peer_device;
  std::uint64_t quiet_since_ns;
  Wait waits_for;
  std::uint64_t waits_since_ns;  // 0: it waits for nothing
  std::uint64_t requests;        // that are open, if it waits
  std::uint64_t moved_ns;        // the last look that saw anything move; 0: none has
  std::uint64_t peer_pid;
  std::uint32_t number;
  std::uint32_t peer_number;
  std::uint64_t peer_identity;       // 0: unknown
  std::vector<PathView> paths;       // without those that there are not
  ClockOffset peer_clock;            // of the peer's host
  std::vector<EventView> life;       // oldest first
  std::vector<EventView> looks;      // the same
  std::vector<std::uint32_t> sizes;  // by number of the message, modulo their count

  std::uint64_t operator[](Counter counter) const {
    return counters[static_cast<std::uint32_t>(counter)];
  }
};

// For each path: whether this end's port went down, and the path has not worked since.
std::vector<bool> own_ports_down(const SlotView& connection);

// Lifecycle: a copy of the header, as it was when the page was opened, and the open file, from
// which
//   slots are copied when they are asked for.
class PageReader {
 public:
  static Result<PageReader> open(const std::string& path);

  std::uint64_t pid() const noexcept { return header_.pid; }
  uid_t owner() const noexcept { return owner_; }  // of the file
  std::uint64_t start_time() const noexcept { return header_.start_time; }
  std::string host() const;
  std::string build() const;
  std::string job() const;  // empty: not known
  std::optional<std::uint32_t> rank() const noexcept;
  std::optional<std::uint32_t> ranks() const noexcept;                  // of the job
  std::uint64_t identity() const noexcept { return header_.identity; }  // 0: none yet
  std::uint64_t alive_ns() const noexcept { return header_.alive_ns; }  // 0: not known
  // The same moment by the clock of its host, which its times are by, and as unix time.
  std::uint64_t opened_ns() const noexcept { return header_.opened_ns; }
  std::uint64_t opened_unix_ns() const noexcept { return header_.opened_unix_ns; }
  std::uint64_t slots_refused() const noexcept { return header_.slots_refused; }
  std::uint32_t slots_used() const noexcept;  // as of now

  // None: no connection has ever used the slot, or it is being given to another one at this moment,
  // again and again, or the file has become shorter.
  std::optional<SlotView> slot(std::uint32_t index) const;
  // The same without the events and the sizes of messages, for programs that read many slots often.
  std::optional<SlotView> brief_slot(std::uint32_t index) const;

 private:
  enum class Parts : std::uint8_t { kBrief, kAll };
  std::optional<SlotView> read_slot(std::uint32_t index, Parts parts) const;
  PageReader(UniqueFd file, const beeline_stats_header& header, uid_t owner) noexcept
      : file_(std::move(file)), header_(header), owner_(owner) {}

  UniqueFd file_;
  beeline_stats_header header_;
  uid_t owner_;
};

}  // namespace beeline
