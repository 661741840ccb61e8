// SPDX-License-Identifier: Apache-2.0
//
// A state of the model of recovery_model.h: all that a search needs to go on from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace beeline::test {

inline constexpr std::size_t kModelLines = 3;  // at most
inline constexpr std::size_t kModelPaths = 2;

using Chunks = std::uint8_t;  // of a message, one bit each
using ByLine = std::array<Chunks, kModelLines>;

struct ModelMessage {
  std::uint16_t report = 0;  // its number in ModelReports
  std::uint8_t kind = 0;     // PathEvent::Kind, or kGoodbye; 0: none
  std::uint8_t path = 0;
  std::uint8_t generation = 0;
  bool peer_has_report = false;

  static constexpr std::uint8_t kGoodbye = 0xff;
};
// The oldest first.
using ModelChannel = std::array<ModelMessage, 3>;

// One end of one path.
struct ModelEnd {
  std::uint16_t own_report = 0;  // its number in ModelReports
  std::uint16_t peer_report = 0;
  std::uint8_t state = 0;  // PathStatus, from here
  std::uint8_t generation = 0;
  std::uint8_t refused = 0;
  bool has_peer_report = false;
  bool is_port_well = true;
  std::uint8_t live = 1;  // the generation of the queue pair that works, plus 1; 0: none
  std::uint8_t made = 0;  // the newest generation that had a queue pair
  bool is_joined = true;
  bool may_grant = true;
  bool is_unfenced = false;  // PathStatus
};

enum class ModelFault : std::uint8_t { kNone, kLink, kSenderPort, kReceiverPort };

struct ModelPath {
  struct Packet {
    std::uint8_t line = 0;
    Chunks chunks = 0;  // 0: none
    std::uint8_t generation = 0;
  };
  struct Grant {
    std::uint8_t number = 0;  // of the line, plus 1; 0: none
    std::uint8_t generation = 0;
  };

  ModelEnd sender;
  ModelEnd receiver;
  ByLine carried{};              // by the sender's count: given to this path, not acknowledged
  ByLine acks{};                 // completions that the sender has not polled
  ByLine notices{};              // completions that the receiver has not polled
  std::array<Packet, 2> data{};  // on the way, the oldest first
  bool is_placed = false;        // the data of the oldest, and nobody has been told
  std::array<Grant, 2> grants{};
  ModelFault fault = ModelFault::kNone;
  bool never_heals = false;
};

struct ModelState {
  std::array<ModelPath, kModelPaths> paths{};
  ModelChannel to_receiver{};
  ModelChannel to_sender{};
  ModelMessage late{};  // will come to whom `late_to` says
  std::uint8_t late_to = 0;
  // --- The sender ---
  std::array<std::uint8_t, 2> ring{};  // by place: the number of its line, plus 1
  std::uint8_t taken = 0;              // lines
  ByLine unsent{};
  ByLine acked{};
  bool is_sender_closed = false;
  // --- The receiver ---
  std::uint8_t next = 0;                             // the first line that is not granted
  ByLine got{};                                      // chunks that have been counted
  std::array<std::uint8_t, kModelLines> carriers{};  // GrantedLine::carrier
  std::array<bool, kModelLines> is_reported_missing{};
  bool is_receiver_closed = false;
  ByLine memory{};  // the chunks that lie in its buffers
  // --- What is left of the budgets ---
  std::uint8_t failures = 0;
  std::uint8_t lost = 0;
  std::uint8_t late_left = 0;
  std::uint8_t vain_offers = 0;
  std::uint8_t unused = 0;  // instead of padding, see below

  bool is_end() const noexcept { return is_sender_closed && is_receiver_closed; }
};
// So that its bytes can be compared.
static_assert(std::has_unique_object_representations_v<ModelState>);

}  // namespace beeline::test
