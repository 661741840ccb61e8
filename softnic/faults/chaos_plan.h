// SPDX-License-Identifier: Apache-2.0
// The plan of `softnic chaos`: random disturbances of random ports, each of which ends again. It
// depends only on its arguments, so that a run can be repeated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "softnic/fabric/fabric.h"

namespace softnic {

enum class Disturbance {
  kDown,
  kBlackHole,
  kPause,
  kLoss,
  kJitter,
  kError,
  kEvent,      // an event without a cause
  kRemove,     // of the whole device
  kRefuseErr,  // of the whole device
  kCorrupt,    // only on request, because programs cannot detect wrong bytes
  kPathError,  // only on request: a part of kError
};

// Parses "down,loss,remove". An empty text means all kinds but kCorrupt and kPathError.
beeline::Outcome<std::vector<Disturbance>> parse_disturbances(const std::string& text);

struct ChaosPort {
  std::string name;           // "h0/softnic0:1"
  std::string device;         // "h0/softnic0"
  bool whole_device = false;  // its whole device may be disturbed, because no port of it is spared
};

struct ChaosRequest {
  std::uint64_t seed = 1;
  std::uint64_t duration_ns = 0;
  std::uint64_t every_ns = 100'000'000;  // average time between the starts of two disturbances
  std::vector<ChaosPort> ports;          // those that may be disturbed
  std::vector<Disturbance> kinds;
};

struct PlannedCommand {
  std::uint64_t at_ns = 0;
  std::string target;
  std::string command;
  bool operator==(const PlannedCommand&) const = default;
};

// Returns the commands in order of time. A port, or a device that is disturbed as a whole, has one
// disturbance at a time. All have ended by `duration_ns`.
std::vector<PlannedCommand> plan_chaos(const ChaosRequest& request);

// Formats the plan as a script.
std::string script_text(const std::vector<PlannedCommand>& plan);

}  // namespace softnic
