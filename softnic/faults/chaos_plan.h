// SPDX-License-Identifier: Apache-2.0
// What `softnic chaos` is going to do: random disturbances of random ports, each with its end. A
// function of its arguments alone, so that a run that found something can be had again.
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
  kEvent,      // a false alarm
  kRemove,     // the whole device
  kRefuseErr,  // the whole device
  kCorrupt,    // only if asked for: no program can be blamed for wrong bytes it cannot see
};

// "down,loss,remove". All but corruption if the text is empty.
beeline::Outcome<std::vector<Disturbance>> parse_disturbances(const std::string& text);

struct ChaosPort {
  std::string name;           // "h0/softnic0:1"
  std::string device;         // "h0/softnic0"
  bool whole_device = false;  // no port of its device is spared
};

struct ChaosRequest {
  std::uint64_t seed = 1;
  std::uint64_t duration_ns = 0;
  std::uint64_t every_ns = 100'000'000;  // between the beginnings of two disturbances, on average
  std::vector<ChaosPort> ports;          // those that may be disturbed
  std::vector<Disturbance> kinds;
};

struct PlannedCommand {
  std::uint64_t at_ns = 0;
  std::string target;
  std::string command;
  bool operator==(const PlannedCommand&) const = default;
};

// In order of time. A port, or a device that is disturbed as a whole, suffers one thing at a time;
// everything has ended by `duration_ns`.
std::vector<PlannedCommand> plan_chaos(const ChaosRequest& request);

// The plan as a script.
std::string script_text(const std::vector<PlannedCommand>& plan);

}  // namespace softnic
