// SPDX-License-Identifier: Apache-2.0
//
// The state of the repair of one path, as one end of a comm keeps it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plugin/connect/comm/path_mail.h"
#include "plugin/recovery/path_machine.h"
#include "plugin/recovery/times.h"

namespace beeline {

// When the next of several attempts is due. The time between them doubles.
class BackOff {
 public:
  static constexpr std::int64_t kNever = INT64_MAX;

  explicit constexpr BackOff(const times::Delays& delays) noexcept
      : delays_(delays), delay_ns_(delays.first_ns) {}

  bool is_due(std::int64_t now_ns) const noexcept { return now_ns >= due_ns_; }
  std::int64_t due_ns() const noexcept { return due_ns_; }
  void set_due(std::int64_t when_ns) noexcept { due_ns_ = when_ns; }
  void stop() noexcept { due_ns_ = kNever; }
  // The next attempt is due after the current delay.
  void wait(std::int64_t now_ns) noexcept {
    due_ns_ = now_ns + delay_ns_;
    delay_ns_ = std::clamp(2 * delay_ns_, delays_.second_ns, delays_.most_ns);
  }
  void reset() noexcept { delay_ns_ = delays_.first_ns; }

 private:
  times::Delays delays_;
  std::int64_t delay_ns_;
  std::int64_t due_ns_ = kNever;
};

struct Repair {
  using Report = decltype(wire::Fenced::report);

  PathStatus status;
  std::string cause;  // of the failure, in words
  std::int64_t failed_ns = 0;
  std::int64_t fenced_ns = 0;      // when the device had been told to fence it
  std::int64_t up_ns = 0;          // when the path was last made anew; 0: never
  std::int64_t port_event_ns = 0;  // of the last event that was looked at
  bool was_silent = false;         // it failed because nothing completed on it
  bool is_device_gone = false;     // this end's; another one is needed to make the path anew
  bool is_device_left = false;     // nothing waits for that device any more
  std::int64_t own_well_ns = 0;    // while another device stands in: since when the path's own is
                                   // well. 0: it is not
  std::int64_t beside_own_ns = 0;  // likewise: since when another path works by its own device
  std::int64_t well_for_ns = times::kWellForNs;  // how long it has to be before it is used again
  bool has_gone_back = false;                    // to the own device, after another one stood in
  std::int64_t look_ns = BackOff::kNever;        // when to look again whether it is
  // In kFencing, if this end's device has refused: since when the peer is known to have fenced.
  // 0: it is not.
  std::int64_t peer_fenced_ns = 0;
  // Receiver: lines before `finished_end` whose messages have completed at the sender and are
  // missing here. If they have not come by `finished_until_ns`, they never will.
  wire::LineSet finished;
  std::uint32_t finished_end = 0;
  std::int64_t finished_until_ns = BackOff::kNever;
  std::uint32_t tries = 0;        // to make the path anew, since it failed
  std::string last_try = {};      // why the last one failed
  std::uint32_t brief_lives = 0;  // generations in a row that failed soon, by this end's device
  Report ours;
  Report theirs;
  // For OFFER_PATH or ANSWER_PATH, which may have to be repeated.
  wire::PathOffer offer;
  std::uint32_t ring_key = 0;  // with the offer
  wire::PathAnswer answer;
  // Sender: came with the answer.
  std::optional<wire::LineKeys> line_keys;
  // The new queue pair, from when the control thread has made it until the comm uses it.
  std::unique_ptr<PathResources> made;
  std::int64_t join_until_ns = 0;
  // In kClear: the sender offers a new generation, and both look at a port that was not well.
  BackOff attempts{times::kAttempts};
  // In a state that waits for the peer: the last message is sent again.
  BackOff repeats{times::kRepeats};

  void forget_returns() noexcept {
    well_for_ns = times::kWellForNs;
    has_gone_back = false;
  }
  std::int64_t due_ns() const noexcept {
    const std::int64_t due =
        std::min({attempts.due_ns(), repeats.due_ns(), look_ns, finished_until_ns});
    return made != nullptr ? std::min(due, join_until_ns) : due;
  }
};

}  // namespace beeline
