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

  // --- For sentences ---
  // Why the path has failed.
  std::string cause = {};
  // Why it could not be made anew the last time.
  std::string last_try = {};
  // The last event of a port that was looked at: whose, and when.
  std::pair<const PortHistory*, std::int64_t> port_event = {};

  // --- Messages ---
  // The report of this end about the path, and that of the other end.
  Report ours = {};
  Report theirs = {};
  // Lines whose messages have completed at the sender, although the receiver's report misses them.
  // At the receiver, those before `finished_end`.
  wire::LineSet finished = {};
  std::uint32_t finished_end = 0;
  // For OFFER_PATH or ANSWER_PATH, which may have to be repeated.
  wire::PathOffer offer = {};
  wire::PathAnswer answer = {};
  // The key of this end's window, which goes with either of them.
  std::uint32_t window_key = 0;
  // At the sender: the keys that came with the answer.
  std::optional<wire::LineKeys> line_keys = {};
  // A write of a message to the other end is under way on this path.
  bool writes_in_band = false;

  // --- Orders to the control thread ---
  // The fence, from when it is ordered until its result is taken.
  std::shared_ptr<FenceOrder> fence = {};
  // The new queue pair, from when the control thread has made it until the comm uses it.
  std::unique_ptr<PathResources> made = {};
};

}  // namespace beeline
