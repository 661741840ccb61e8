// SPDX-License-Identifier: Apache-2.0
//
// The options of a run. They are the same on every rank, and each rank derives from them what the
// other ranks do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "include/nccl/net_common.h"
#include "tools/cli/exit_status.h"

namespace beeline::perf {

// One --env: a variable of the environment for one rank, or for all.
struct RankVariable {
  static constexpr int kAllRanks = -1;
  int rank = kAllRanks;
  std::string name;
  std::string value;
};

// --dev a1,b1/a2,b2: the c-th group is for comm c, and its r-th entry for rank r. Both wrap around.
using DeviceSpec = std::vector<std::vector<std::string>>;

// Where the buffers are, and how they are registered. kMixed: as dma-bufs on even ranks, as
// pointers on odd ones.
enum class MemoryChoice { kHost, kPeermem, kDmabuf, kMixed };
const char* to_string(MemoryChoice choice);

// Whether received data is flushed. kAuto: where NCCL would flush.
enum class FlushChoice { kAuto, kAlways, kNever };
const char* to_string(FlushChoice choice);

// The value of --rank if this process starts all ranks.
inline constexpr int kEveryRank = -1;

struct Options {
  std::string pattern;
  std::string plugin;  // empty: our own
  int abi = 0;         // 0: the newest that the plugin exports
  int ranks = 2;
  int rank = kEveryRank;
  std::string rendezvous;  // HOST:PORT or a file, with `rank`
  std::vector<size_t> sizes;
  int depth = NCCL_STEPS;
  int comms = 1;
  std::optional<double> seconds;         // per size; soak: in all
  std::uint64_t iterations = 0;          // 0: as many as `seconds` allows
  std::optional<std::uint64_t> warm_up;  // iterations before those; none: as the pattern wants
  size_t slice = size_t{512} << 10;
  DeviceSpec devices;
  int rails = 1;  // so many devices are merged into one
  std::vector<RankVariable> variables;
  std::vector<std::string> hosts;
  std::string json;
  int timeout_seconds = 120;
  double hold_seconds = 0;  // after a failure, so that the other ranks can report theirs
  std::optional<ncclDebugLogLevel> log_level;  // none: as NCCL_DEBUG says
  std::uint64_t seed = 0;                      // 0: from the clock, and printed
  bool check = true;
  bool check_every = false;  // every message of the patterns that else check some
  bool pin = false;          // a processor for each rank
  bool list = false;         // only show the devices
  MemoryChoice memory = MemoryChoice::kHost;
  FlushChoice flush = FlushChoice::kAuto;
};

double seconds_of(const Options& options);

// "0,7,4K,1M..64M": numbers with K, M or G (powers of 1024), and ranges of powers of two.
Outcome<std::vector<size_t>> parse_sizes(const std::string& text);
Outcome<size_t> parse_size(const std::string& text);
// The same as nccl-tests names them: from -b to -e, each -f times the one before. Empty texts and
// no factor: not given.
Outcome<std::vector<size_t>> parse_steps(const std::string& begin, const std::string& end,
                                         std::optional<int> factor);
Outcome<DeviceSpec> parse_devices(const std::string& text);
// "[RANK:]NAME=VALUE"
Outcome<RankVariable> parse_variable(const std::string& text);
// "v8" or "8"
Outcome<int> parse_abi(const std::string& text);

Outcome<MemoryChoice> parse_memory(const std::string& text);
Outcome<FlushChoice> parse_flush(const std::string& text);

std::vector<std::string> split(const std::string& text, char separator);

}  // namespace beeline::perf
