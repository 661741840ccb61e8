// SPDX-License-Identifier: Apache-2.0
//
// The faults of the fake plugin: with FAKE_FAULT=NAME@N it misbehaves at the N-th message that this
// process sends or receives.
#pragma once

#include <atomic>
#include <cstdlib>
#include <string>

namespace fake {

enum class Fault {
  kNone,
  // on the sending side
  kFail,   // isend returns ncclRemoteError
  kStall,  // the send never completes, nor does any after it
  kBlock,  // isend does not return
  kDie,    // the process is killed
  // on the receiving side
  kCorrupt,    // a bit of the data is flipped
  kUnwritten,  // the data is discarded
  kOverrun,    // a byte after the buffer is written
  kSize,       // a size that is too small is reported
};

struct FaultPlan {
  Fault fault = Fault::kNone;
  long at = 0;
};

inline FaultPlan read_fault_plan() {
  const char* const variable = std::getenv("FAKE_FAULT");
  const std::string text = variable == nullptr ? "" : variable;
  const size_t at = text.find('@');
  if (at == std::string::npos) return {};
  const std::string name = text.substr(0, at);
  const long number = std::atol(text.c_str() + at + 1);
  if (name == "fail") return {Fault::kFail, number};
  if (name == "stall") return {Fault::kStall, number};
  if (name == "block") return {Fault::kBlock, number};
  if (name == "die") return {Fault::kDie, number};
  if (name == "corrupt") return {Fault::kCorrupt, number};
  if (name == "unwritten") return {Fault::kUnwritten, number};
  if (name == "overrun") return {Fault::kOverrun, number};
  if (name == "size") return {Fault::kSize, number};
  return {};
}

// Read once per process, after the tool has set the rank's environment.
inline bool fault_is(Fault fault, long number) {
  static const FaultPlan plan = read_fault_plan();
  return plan.fault == fault && plan.at == number;
}

}  // namespace fake
