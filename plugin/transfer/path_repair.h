// SPDX-License-Identifier: Apache-2.0
//
// The part of a path's state that is needed while the path is made anew, except for what
// RepairEngine decides by: messages and queue pairs that are passed on, and parts of sentences.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "plugin/connect/comm/fence_order.h"
#include "plugin/connect/comm/path_resources.h"
#include "plugin/wire/message_remake.h"

namespace beeline {

struct PathRepair {
  using Report = decltype(wire::Fenced::report);

  std::string cause = {};     // of the failure, in words
  std::string last_try = {};  // why the path could not be made anew
  // The last event of a port that was looked at: whose, and when.
  std::pair<const PortHistory*, std::int64_t> port_event = {};
  Report ours = {};
  Report theirs = {};
  // Lines whose messages have completed at the sender, although the receiver's report misses them.
  // At the receiver, those before `finished_end`.
  wire::LineSet finished = {};
  std::uint32_t finished_end = 0;
  // For OFFER_PATH or ANSWER_PATH, which may have to be repeated.
  wire::PathOffer offer = {};
  wire::PathAnswer answer = {};
  std::uint32_t window_key = 0;                  // with either
  std::optional<wire::LineKeys> line_keys = {};  // sender: came with the answer
  bool writes_in_band = false;                   // one write is under way
  std::shared_ptr<FenceOrder> fence = {};  // from when it is ordered until its result is taken
  // The new queue pair, from when the control thread has made it until the comm uses it.
  std::unique_ptr<PathResources> made = {};
};

}  // namespace beeline
