// SPDX-License-Identifier: Apache-2.0
//
// The messages by which both ends make a failed path anew. OFFER_PATH and ANSWER_PATH describe the
// new queue pairs like CONNECT and ACCEPT, and PATH_NOTE says the rest. Which message follows which
// is in plugin/recovery/path_machine.h.
//
// `path` is the index of the path in the comm, the same at both ends, and `generation` that of the
// new queue pair. PathOffer::number and PathAnswer::number are 0.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plugin/wire/message_frame.h"
#include "plugin/wire/message_path.h"
#include "plugin/wire/reports.h"

namespace beeline::wire {

// By the sending end of the comm.
struct OfferPath {
  static constexpr MessageType kType = MessageType::kOfferPath;
  std::uint32_t comm = 0;
  std::uint8_t path = 0;
  std::uint32_t generation = 0;
  SenderReport report;  // about the generation before, as in FENCED, which may have been lost
  PathOffer offer;
  std::uint32_t ring_key = 0;  // of the sender's credit ring, for this path

  bool operator==(const OfferPath&) const = default;
};

// The keys by which the sender writes to the buffers of lines that it may hold already, on a rail
// whose device is another one since.
struct LineKeys {
  struct Key {
    std::uint32_t position = 0;  // of the line
    std::uint32_t key = 0;

    bool operator==(const Key&) const = default;
  };
  std::uint32_t next = 0;  // position of the first line that has the rail's key in itself
  std::vector<Key> keys;   // of lines before that. The rail cannot carry the others

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
  std::uint8_t path = 0;
  std::uint32_t generation = 0;
  PathAnswer answer;
  std::optional<LineKeys> line_keys;

  bool operator==(const AnswerPath&) const = default;
};

enum class PathNews : std::uint8_t {
  kNotNow,       // receiver: it cannot make its queue pair at present
  kWell,         // receiver: its port is well again
  kReady,        // sender: the path is in use, and lines may be granted by it
  kCannotFence,  // either: its device cannot stop what comes for the path; the peer has to
};

struct PathNote {
  static constexpr MessageType kType = MessageType::kPathNote;
  std::uint32_t comm = 0;
  std::uint8_t path = 0;
  std::uint32_t generation = 0;
  PathNews news = PathNews::kNotNow;

  bool operator==(const PathNote&) const = default;
};

Bytes encode(const OfferPath& message);
Bytes encode(const AnswerPath& message);
Bytes encode(const PathNote& message);
template <class Message>
Result<Message> decode(ByteView body);
template <>
Result<OfferPath> decode<OfferPath>(ByteView body);
template <>
Result<AnswerPath> decode<AnswerPath>(ByteView body);
template <>
Result<PathNote> decode<PathNote>(ByteView body);

}  // namespace beeline::wire
