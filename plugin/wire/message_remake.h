// SPDX-License-Identifier: Apache-2.0
//
// The messages about a path that has failed: by which both ends take it out of use, and make it
// anew. OFFER_PATH and ANSWER_PATH describe the
// new queue pairs like CONNECT and ACCEPT, and PATH_NOTE says the rest. Which message follows which
// is in plugin/repair/path_machine.h.
//
// `path` is the index of the path in the comm, the same at both ends, and `generation` that of the
// new queue pair. PathOffer::number and PathAnswer::number are 0. A message travels over the
// control channel and also in-band (in_band.h). `serial` counts the messages of an end about the
// paths of a comm, so that the other end takes one copy.
//
// message_bytes.h explains fields().
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "plugin/wire/message_frame.h"
#include "plugin/wire/message_path.h"
#include "plugin/wire/reports.h"

namespace beeline::wire {

// The part of FENCED that says why the path is fenced, if its cause is at the end that sends it.
enum class PathTrouble : std::uint8_t {
  kNone,      // nothing: a request failed, or nothing completes
  kPortDown,  // its port is not ACTIVE
  kAddress,   // an address of its port has changed, or is gone
  kDevice,    // its device is gone
  kMoves,     // the path has not failed: it goes over to queue pairs that are ready
  kLeaves,    // the same, but it has none yet: its device is no longer to stand in for another
};

// FENCED: the end that sends it has taken a path of a comm out of use, and reports what it has got
// by it. The other end does the same, and then what is missing goes over the other paths.
struct Fenced {
  static constexpr MessageType kType = MessageType::kFenced;
  std::uint32_t comm = 0;
  std::uint32_t serial = 0;
  std::uint8_t path = 0;
  std::uint32_t generation = 0;  // of the path
  bool has_peer_report = false;  // no answer is needed
  PathTrouble trouble = PathTrouble::kNone;
  std::variant<ReceiverReport, SenderReport> report;
  // Only a sender that has the receiver's report fills this in. It names lines before
  // `report.taken` which that report calls missing, although their messages have completed at the
  // sender, so that nothing is sent again. If their data has not come by another path since, a
  // device has lost what it has acknowledged.
  LineSet finished = {};

  static void fields(auto& io, auto& fenced) {
    io(fenced.comm, fenced.serial);
    io.within(fenced.path, 0, kMaxPaths - 1);
    io(fenced.generation, fenced.has_peer_report);
    io.choice(fenced.trouble, PathTrouble::kLeaves);
    io(fenced.report, fenced.finished);
    io.require(fenced.finished.empty() ||
               (fenced.has_peer_report && std::holds_alternative<SenderReport>(fenced.report)));
  }
  bool operator==(const Fenced&) const = default;
};

// By the sending end of the comm. With `prepares`, the path is still in use: both ends make,
// connect and probe the queue pairs of the next generation, and keep them. Once they are ready, the
// sender fences the path and offers that generation as after a failure, but nothing is left to be
// made.
struct OfferPath {
  static constexpr MessageType kType = MessageType::kOfferPath;
  std::uint32_t comm = 0;
  std::uint32_t serial = 0;
  std::uint8_t path = 0;
  std::uint32_t generation = 0;
  bool prepares = false;
  SenderReport report;  // about the generation before, as in FENCED, which may have been lost
  PathOffer offer;
  std::uint32_t window_key = 0;  // of the sender's window, for this path

  static void fields(auto& io, auto& message) {
    io(message.comm, message.serial);
    io.within(message.path, 0, kMaxPaths - 1);
    io(message.generation, message.prepares, message.report, message.offer, message.window_key);
  }
  bool operator==(const OfferPath&) const = default;
};

// The keys by which the sender writes to the buffers of lines that it may hold already, on a rail
// whose device is another one since.
struct LineKeys {
  struct Key {
    std::uint32_t position = 0;  // of the line
    std::uint32_t key = 0;

    static void fields(auto& io, auto& one) { io(one.position, one.key); }
    bool operator==(const Key&) const = default;
  };
  std::uint32_t next = 0;  // position of the first line that has the rail's key in itself
  std::vector<Key> keys;   // of lines before that. The rail cannot carry the others

  static void fields(auto& io, auto& keys) {
    io(keys.next);
    io.list(keys.keys, kMaxLines);
    io.require(is_consistent(keys));
  }
  bool operator==(const LineKeys&) const = default;
};
// For keys that were read from a message.
inline bool is_consistent(const LineKeys& keys) noexcept {
  LineSet seen;
  for (const LineKeys::Key& one : keys.keys) {
    if (!is_in_ring_before(keys.next, one.position) || seen.has(one.position)) return false;
    seen.add(one.position);
  }
  return true;
}

struct AnswerPath {
  static constexpr MessageType kType = MessageType::kAnswerPath;
  std::uint32_t comm = 0;
  std::uint32_t serial = 0;
  std::uint8_t path = 0;
  std::uint32_t generation = 0;
  bool prepares = false;  // as the offer
  PathAnswer answer;
  std::uint32_t window_key = 0;  // of the receiver's window, for this path; 0: it has none
  std::optional<LineKeys> line_keys;

  static void fields(auto& io, auto& message) {
    io(message.comm, message.serial);
    io.within(message.path, 0, kMaxPaths - 1);
    io(message.generation, message.prepares, message.answer, message.window_key, message.line_keys);
  }
  bool operator==(const AnswerPath&) const = default;
};

enum class PathNews : std::uint8_t {
  kNotNow,       // receiver: it cannot make its queue pair at present
  kWell,         // receiver: its port is well again
  kReady,        // sender: the path is in use, and lines may be granted by it
  kCannotFence,  // either: its device cannot stop what comes for the path; the peer has to
  kWaits,  // receiver: it has waited for long for the message of the line at `position`, which
           // it has granted by the path
  kMove,   // receiver: the path is in use by a device that stands in, and its own works again
};

struct PathNote {
  static constexpr MessageType kType = MessageType::kPathNote;
  std::uint32_t comm = 0;
  std::uint32_t serial = 0;
  std::uint8_t path = 0;
  std::uint32_t generation = 0;
  PathNews news = PathNews::kNotNow;
  std::uint32_t position = 0;  // only with kWaits

  static void fields(auto& io, auto& note) {
    io(note.comm, note.serial);
    io.within(note.path, 0, kMaxPaths - 1);
    io(note.generation);
    io.choice(note.news, PathNews::kMove);
    io(note.position);
    io.require(note.news == PathNews::kWaits || note.position == 0);
  }
  bool operator==(const PathNote&) const = default;
};

}  // namespace beeline::wire
