// SPDX-License-Identifier: Apache-2.0
//
// What one end does when a path fails, as a table: from the state of the path and an event follow
// the actions and the next state. It is a pure function without a clock, verbs or memory of its
// own, so that tests can try all orders of events.
//
// When a path fails, each end moves its queue pair to ERROR, so that nothing arrives any more, and
// counts what has arrived. It then tells the other end in a FENCED message. When an end has both
// reports (path_reports.h) it knows what was lost, and sends that again on other paths. Then the
// sending end offers a new generation of the path: new queue pairs at both ends.
//
//                 the path fails        drained           FENCED of the peer
//         kUp -------------------> kFencing ----> kFenced -------------------> kClear
//
//   sender:   kClear, kMaking -- OFFER --> kOffered -- ANSWER came --> kProbing -- READY --> kUp
//   receiver: kClear -- OFFER came --> kMaking -- ANSWER --> kAnswered -- READY came --> kUp
//
// A device may refuse to move the queue pair to ERROR, or may have been removed. Its end then sends
// CANNOT_FENCE. The other end moves its own queue pair to ERROR and reports, so that it sends
// nothing more. A moment later, the first end takes its report.
//
// Messages may be lost, late or doubled, and two directions have no common order. Each message
// therefore names the state of its sender, not a change. In kFenced, kOffered and kAnswered an end
// repeats it until the peer answers. In kClear it answers a FENCED with its own.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>

namespace beeline {

enum class PathState : std::uint8_t {
  kUp,        // carries data
  kFencing,   // the queue pair is in ERROR, and its completions are being counted
  kFenced,    // all is counted; waits for the peer's report
  kClear,     // both ends know what was lost; there is no queue pair
  kMaking,    // another thread is making the queue pair of a new generation
  kOffered,   // sender: has offered a new generation
  kProbing,   // sender: the peer has answered; the new queue pair carries a write of 0 bytes
  kAnswered,  // receiver: has answered; data counts, but nothing is granted before READY
};

// Of two generations; they may wrap around.
constexpr bool is_older(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) < 0;
}

// One end of one path.
struct PathStatus {
  PathState state = PathState::kUp;
  bool is_sender = false;        // the end that sends data is the one that offers generations
  bool is_port_well = true;      // of this end
  bool has_peer_report = false;  // about this generation; or none is needed
  bool is_held = false;          // sender: not offered yet; it fails often, or has to be prepared
  bool is_unfenced = false;      // in kFencing: the device has refused, so the peer fences first
  std::uint32_t generation = 0;  // of our newest queue pair
  std::uint32_t refused = 0;     // receiver: the offer that was answered with NOT_NOW; 0: none

  bool operator==(const PathStatus&) const = default;
};

struct PathEvent {
  enum class Kind : std::uint8_t {
    // --- At this end ---
    kFailed,        // a request failed, the device reports an error, or the path is silent
    kFenceRefused,  // the device does not move the queue pair to ERROR, or is gone
    kDrained,       // all completions of the queue pair in ERROR have been counted; after
                    // kFenceRefused: the peer is fenced, and all that it had sent is counted
    kTimer,         // it is time to repeat a message or, in kClear, to offer again
    kPortWell,      // the port has become usable
    kPortNotWell,   // the port has become unusable
    kQueuesMade,    // the new queue pair is there; at the receiver it is connected and in use
    kProbed,        // the write of 0 bytes has completed, and the new queue pair is in use
    kQueuesFailed,  // the new queue pair could not be made or connected, or its probe has failed
    // --- Messages ---
    kPeerFenced,       // FENCED, with the peer's report; says whether the peer has ours
    kPeerCannotFence,  // memory of the peer may change until this end has fenced
    kOffer,            // to the receiver; with the sender's report
    kAnswer,           // to the sender, as the next two
    kNotNow,
    kWell,
    kReady,  // to the receiver
  };
  static constexpr std::uint8_t kKinds = 16;

  Kind kind = Kind::kTimer;
  std::uint32_t generation = 0;  // of a message
  bool peer_has_report = false;  // of kPeerFenced: an answer is not needed

  bool is_message() const noexcept { return kind >= Kind::kPeerFenced; }
};

// In this order the actions of one transition are taken.
enum class PathAction : std::uint8_t {
  kDetach,          // the data thread leaves the path alone
  kMoveToError,     // the queue pair, so that nothing arrives any more
  kTakeReport,      // of this end, about everything until now
  kKeepPeerReport,  // that came with the message
  kResolve,         // decide with both reports what is sent again. The queue pair stays until its
                    // successor is made, so that the successor cannot get its number
  kDestroyQueues,   // at once: they have carried nothing
  kMakeQueues,      // of the new generation; the receiver also connects them. kQueuesMade follows
  kConnectQueues,   // the sender, as the answer says, and writes 0 bytes. kProbed follows
  kAllowGrants,
  kSendFenced,  // with the report that was taken last
  kSendCannotFence,
  kSendOffer,  // with the report that was taken last
  kSendAnswer,
  kSendNotNow,
  kSendWell,
  kSendReady,
  kProtocolError,  // the peer has broken the rules; the comm ends
};

class PathActions {
 public:
  constexpr PathActions() noexcept = default;
  constexpr PathActions(std::initializer_list<PathAction> actions) noexcept {
    for (const PathAction action : actions) bits_ |= bit(action);
  }

  constexpr bool has(PathAction action) const noexcept { return (bits_ & bit(action)) != 0; }
  constexpr bool empty() const noexcept { return bits_ == 0; }
  constexpr PathActions operator|(PathActions other) const noexcept {
    other.bits_ |= bits_;
    return other;
  }
  constexpr bool operator==(const PathActions&) const noexcept = default;

  // Calls `take` for each, in their order, until it returns false.
  template <class Take>
  void each(Take&& take) const {
    for (std::uint32_t rest = bits_; rest != 0; rest &= rest - 1) {
      if (!take(static_cast<PathAction>(std::countr_zero(rest)))) return;
    }
  }

 private:
  static constexpr std::uint32_t bit(PathAction action) noexcept {
    return std::uint32_t{1} << static_cast<std::uint8_t>(action);
  }

  std::uint32_t bits_ = 0;
};

struct PathTransition {
  PathStatus next;
  PathActions actions;
  // Of the message that is sent, if one is.
  std::uint32_t message_generation = 0;
  bool has_peer_report = false;  // for a FENCED: PathEvent::peer_has_report at the other end
};

// If an action fails, the later ones of the transition are not taken. kQueuesFailed follows if
// kMakeQueues or kConnectQueues has failed. A transition without actions into the same
// state means that the event is ignored.
PathTransition on_event(const PathStatus& status, const PathEvent& event) noexcept;

}  // namespace beeline
