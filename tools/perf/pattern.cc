// SPDX-License-Identifier: Apache-2.0
//
// The table of patterns.
#include "tools/perf/pattern.h"

#include <algorithm>

namespace beeline::perf {
namespace {

constexpr Column kTime{"time_us", "time", "(us)", Merge::kMean};
constexpr Column kOwnAlgbw{"algbw", "algbw", "(GB/s)", Merge::kMean};
constexpr Column kOwnBusbw{"busbw", "busbw", "(GB/s)", Merge::kMean};
// The sum over all pairs.
constexpr Column kAllAlgbw{"algbw", "algbw", "(GB/s)", Merge::kSum};
constexpr Column kAllBusbw{"busbw", "busbw", "(GB/s)", Merge::kSum};

// Describes which data is compared. The messages of a window have the same bytes in every round of
// a portion, and each round overwrites the buffers of the round before.
constexpr const char* kWindows = "every byte of the first window, and of the last of each portion";
constexpr const char* kGroups =
    "every byte of the first groups, and of the last of each portion; the size of every message";
constexpr const char* kMessages = "every byte of every message";
constexpr const char* kReductions = "every element of every all-reduce";

const std::vector<Pattern>& table() {
  static const std::vector<Pattern> patterns{
      {"latency",
       "ping-pong in pairs of ranks; times are half of that from send to answer",
       "0,8,64,512,4K,64K,1M",
       "uint8",
       1,
       "none",
       {{"least_us", "least", "(us)", Merge::kLeast},
        {"time_us", "median", "(us)", Merge::kMean},
        {"p99_us", "p99", "(us)", Merge::kGreatest}},
       "time_us",
       kWindows,
       run_latency},
      {"stream",
       "one direction, --depth messages in flight on each comm",
       "4K..4M",
       "uint8",
       1,
       "none",
       {kTime, kAllAlgbw, kAllBusbw},
       "busbw",
       kWindows,
       run_stream},
      {"rate",
       "small messages in one direction, counted per second",
       "8",
       "uint8",
       1,
       "none",
       {kTime, {"rate", "rate", "(M/s)", Merge::kSum}, kAllAlgbw},
       "rate",
       kWindows,
       run_rate},
      {"bidir",
       "both directions at once",
       "4K..4M",
       "uint8",
       1,
       "none",
       {kTime, kAllAlgbw, kAllBusbw},
       "busbw",
       kWindows,
       run_bidir},
      {"multirecv",
       "grouped receives with tags; the sends come in another order",
       "0,8,4K,64K",
       "uint8",
       1,
       "none",
       {kTime,
        {"parts", "parts", "/group", Merge::kMean},
        {"rate", "groups", "(M/s)", Merge::kSum},
        kAllAlgbw},
       "rate",
       kGroups,
       run_multirecv},
      {"connect",
       "sets up --comms comms, sends a message on each and closes them; times are per comm",
       "8",
       "uint8",
       1,
       "none",
       {{"listen_us", "listen", "(us)", Merge::kMean},
        {"time_us", "connect", "(us)", Merge::kMean},
        {"message_us", "1st msg", "(us)", Merge::kMean},
        {"close_us", "close", "(us)", Merge::kMean}},
       "time_us",
       kMessages,
       run_connect},
      {"allreduce",
       "ring all-reduce of floats over all ranks",
       "8..16M",
       "float",
       sizeof(float),
       "sum",
       {kTime, kOwnAlgbw, kOwnBusbw},
       "busbw",
       kReductions,
       run_allreduce},
      {"soak",
       "random comms, sizes, groups, tags, pauses, registrations and reconnects",
       "0..256K",
       "uint8",
       1,
       "none",
       {{"comms", "comms", "", Merge::kSum},
        {"messages", "messages", "", Merge::kSum},
        {"megabytes", "data", "(MB)", Merge::kSum},
        {"registrations", "regMr", "", Merge::kSum},
        {"time_us", "time", "(us)", Merge::kGreatest}},
       "messages",
       kMessages,
       run_soak},
  };
  return patterns;
}

}  // namespace

std::span<const Pattern> all_patterns() { return table(); }

const char* compared(const Pattern& pattern, const Options& options) {
  return options.check_every ? kMessages : pattern.compared;
}

const Pattern* find_pattern(const std::string& name) {
  const auto found = std::find_if(table().begin(), table().end(),
                                  [&](const Pattern& pattern) { return pattern.name == name; });
  return found == table().end() ? nullptr : &*found;
}

}  // namespace beeline::perf
