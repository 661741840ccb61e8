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
      {.name = "latency",
       .summary = "ping-pong in pairs of ranks; times are half of that from send to answer",
       .sizes = "0,8,64,512,4K,64K,1M",
       .columns = {{"least_us", "least", "(us)", Merge::kLeast},
                   {"time_us", "median", "(us)", Merge::kMean},
                   {"p99_us", "p99", "(us)", Merge::kGreatest}},
       .average = "time_us",
       .compared = kWindows,
       .run = run_latency},
      {.name = "stream",
       .summary = "one direction, --depth messages in flight on each comm",
       .sizes = "4K..4M",
       .columns = {kTime, kAllAlgbw, kAllBusbw},
       .average = "busbw",
       .compared = kWindows,
       .run = run_stream},
      {.name = "rate",
       .summary = "small messages in one direction, counted per second",
       .sizes = "8",
       .columns = {kTime, {"rate", "rate", "(M/s)", Merge::kSum}, kAllAlgbw},
       .average = "rate",
       .compared = kWindows,
       .run = run_rate},
      {.name = "bidir",
       .summary = "both directions at once",
       .sizes = "4K..4M",
       .columns = {kTime, kAllAlgbw, kAllBusbw},
       .average = "busbw",
       .compared = kWindows,
       .run = run_bidir},
      {.name = "multirecv",
       .summary = "grouped receives with tags; the sends come in another order",
       .sizes = "0,8,4K,64K",
       .columns = {kTime,
                   {"parts", "parts", "/group", Merge::kMean},
                   {"rate", "groups", "(M/s)", Merge::kSum},
                   kAllAlgbw},
       .average = "rate",
       .compared = kGroups,
       .run = run_multirecv},
      {.name = "connect",
       .summary =
           "sets up --comms comms, sends a message on each and closes them; times are per comm",
       .sizes = "8",
       .columns = {{"listen_us", "listen", "(us)", Merge::kMean},
                   {"time_us", "connect", "(us)", Merge::kMean},
                   {"message_us", "1st msg", "(us)", Merge::kMean},
                   {"close_us", "close", "(us)", Merge::kMean}},
       .average = "time_us",
       .compared = kMessages,
       .run = run_connect},
      {.name = "allreduce",
       .summary = "ring all-reduce of floats over all ranks",
       .sizes = "8..16M",
       .type = "float",
       .type_bytes = sizeof(float),
       .redop = "sum",
       .columns = {kTime, kOwnAlgbw, kOwnBusbw},
       .average = "busbw",
       .compared = kReductions,
       .run = run_allreduce},
      {.name = "soak",
       .summary = "random comms, sizes, groups, tags, pauses, registrations and reconnects",
       .sizes = "0..256K",
       .columns = {{"comms", "comms", "", Merge::kSum},
                   {"messages", "messages", "", Merge::kSum},
                   {"megabytes", "data", "(MB)", Merge::kSum},
                   {"registrations", "regMr", "", Merge::kSum},
                   {"time_us", "time", "(us)", Merge::kGreatest}},
       .average = "messages",
       .compared = kMessages,
       .run = run_soak},
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
