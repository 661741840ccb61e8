// SPDX-License-Identifier: Apache-2.0
//
// What a rank reports to the coordinator about itself. json.h converts it to the bodies of frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace beeline::perf {

struct GpuFacts {
  int ordinal = 0;
  std::string name = {};
  std::string pci = {};
  std::string compute = {};  // "9.0"
};

// Facts about the rank, and about its plugin after init. With --list, none about memory.
struct RankFacts {
  std::string name = {};  // that the plugin gives itself
  int abi = 0;
  std::string file = {};
  int pid = 0;
  std::string host = {};
  std::vector<std::string> devices = {};
  std::string text = {};             // what --list prints
  std::string memory = {};           // as --memory says it
  std::optional<GpuFacts> gpu = {};  // none for memory of the host
  bool flush = false;                // whether something of what arrives is flushed
};

struct Status {
  std::uint64_t done = 0;    // requests
  std::string phase = {};    // "4096 bytes, measuring"
  std::string waiting = {};  // what for, or empty
};

}  // namespace beeline::perf
