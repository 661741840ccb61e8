// SPDX-License-Identifier: Apache-2.0
//
// Adds up the counters of all connections. A total must never go down, or Prometheus takes it for
// a counter that began anew at zero and reports traffic that there was not. So what connections and
// processes have counted is kept after their end: each look adds only what has grown since the one
// before.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/pages/processes.h"

namespace beeline::exporter {

// The sum over all connections of one of NCCL's devices in one direction.
struct ConnectionTotal {
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
  std::uint64_t truncations = 0;
  std::uint64_t errors = 0;
};

// The sum over all paths that use one port.
struct PortTotal {
  std::map<std::string, std::uint64_t> bytes = {};  // by direction
  std::uint64_t failures = 0;
};

// The word for a label: "send", "receive", or "other" for a number of a newer version.
std::string direction_of(SlotRole role);

// A page is written by another process, which may put any name into it. More names than this count
// as one that is called "other", so that neither this process nor Prometheus runs out of memory.
inline constexpr std::size_t kMostNames = 256;
inline constexpr const char* kOtherName = "other";

// Lifecycle: as long as the totals have to last. Threads: one.
class Totals {
 public:
  // The first look also adds what the processes that run then have counted before. It ignores the
  // pages of processes that have ended by then.
  void add(const std::vector<pages::Process>& processes);

  using ByDevice = std::map<std::pair<std::string, std::string>, ConnectionTotal>;
  const ByDevice& by_device() const noexcept { return by_device_; }  // and direction
  const std::map<std::string, PortTotal>& by_port() const noexcept { return by_port_; }
  std::uint64_t slots_refused() const noexcept { return slots_refused_; }

 private:
  struct SeenPath {
    std::uint64_t bytes = 0;
    std::uint64_t failures = 0;
  };
  struct SeenConnection {
    ConnectionTotal counted = {};
    std::vector<SeenPath> paths = {};
  };
  struct SeenProcess {
    std::uint64_t look = 0;  // the last one that saw it
    std::uint64_t slots_refused = 0;
    std::map<std::uint64_t, SeenConnection> connections = {};  // by id
  };
  using ProcessKey = std::pair<std::int64_t, std::uint64_t>;  // its pid and start time

  void add_process(const pages::Process& process, SeenProcess& seen);
  SeenConnection add_connection(const SlotView& slot, const SeenConnection& before);
  void add_paths(const SlotView& slot, const SeenConnection& before, SeenConnection& now);

  std::uint64_t looks_ = 0;
  std::map<ProcessKey, SeenProcess> seen_;
  ByDevice by_device_;
  std::map<std::string, PortTotal> by_port_;
  std::uint64_t slots_refused_ = 0;
};

}  // namespace beeline::exporter
