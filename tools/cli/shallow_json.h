// SPDX-License-Identifier: Apache-2.0
//
// Limits how deep lists may be nested in JSON of other processes: each level takes memory, and the
// stack of recursive code. Includes no header of nlohmann-json, because compiling it is slow.
#pragma once

namespace beeline::tools {

// A callback for nlohmann::json::parse(). Of deeper values nothing is kept.
struct AtMostDeep {
  int most = 8;

  template <class Event, class Json>
  bool operator()(int depth, Event /*event*/, const Json& /*value*/) const noexcept {
    return depth <= most;
  }
};

}  // namespace beeline::tools
