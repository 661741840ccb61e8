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

  bool operator==(const OfferPath&) const = default;
};

struct AnswerPath {
  static constexpr MessageType kType = MessageType::kAnswerPath;
  std::uint32_t comm = 0;
  std::uint8_t path = 0;
  std::uint32_t generation = 0;
  PathAnswer answer;

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
