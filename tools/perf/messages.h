// SPDX-License-Identifier: Apache-2.0
//
// The messages between a rank and the coordinator. Each is one line. A line of a rank begins with
// its kind. json.h converts the facts that a rank reports of itself to the rest of the line. The
// lines of the coordinator are all of one kind: the parts of all ranks (team.h), separated by
// blanks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace beeline::perf {

enum class Kind : char {
  kPlugin = 'p',  // RankFacts
  kStatus = 's',  // Status
  kGather = 'g',  // the purpose, NUL, the part of this rank in hexadecimal digits
  kRow = 'r',     // the row of this rank for one line of the table
  kFailed = 'f',  // Ended
  kDone = 'd',
};

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

// Why a rank ends early.
struct Ended {
  int code = 0;  // its exit status
  std::string why = {};
};

}  // namespace beeline::perf
