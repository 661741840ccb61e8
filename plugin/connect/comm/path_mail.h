// SPDX-License-Identifier: Apache-2.0
//
// The messages, orders, results and news by which a comm repairs a path. The comm sends messages to
// its peer and gives orders to the control thread. It waits for neither: the peer's messages and
// the results of orders arrive in one queue (Link), which the comm reads when it is called.
//
// Each names the path by its index, and the generation of the queue pair that it is about. A result
// that comes too late is recognized by its generation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plugin/connect/comm/fence_order.h"
#include "plugin/connect/comm/path_resources.h"
#include "plugin/wire/message_remake.h"

namespace beeline {

// A message of either end to the other. Link sets the number of the comm.
using PathMessage = std::variant<wire::Fenced, wire::OfferPath, wire::AnswerPath, wire::PathNote>;

template <class Message>
bool read_as(const wire::Frame& frame, std::optional<Result<PathMessage>>& read) {
  if (frame.type != Message::kType) return false;
  Result<Message> message = wire::decode<Message>(frame.body);
  if (message) {
    read.emplace(*std::move(message));
  } else {
    read.emplace(fail(message.error()));
  }
  return true;
}
// Empty: the frame has a message of another type.
inline std::optional<Result<PathMessage>> path_message_in(const wire::Frame& frame) {
  std::optional<Result<PathMessage>> read;
  (void)(read_as<wire::Fenced>(frame, read) || read_as<wire::OfferPath>(frame, read) ||
         read_as<wire::AnswerPath>(frame, read) || read_as<wire::PathNote>(frame, read));
  return read;
}

// --- Orders of the comm ---

// A queue pair of a new generation. With an offer (at the receiving end) it is also connected.
struct MakePath {
  // Tried in this order: the path's own device, and those that may stand in for it.
  std::vector<const Device*> devices;
  std::optional<wire::PathOffer> offer;
  std::uint32_t window_key = 0;  // with the offer: of the peer's window
  bool has_loopback = false;     // with a queue pair for flushes
};
// Connects what MakePath has made, and writes 0 bytes to see whether the path works.
struct ConnectPath {
  wire::PathAnswer answer;
  std::uint32_t window_key = 0;
};
// Destroys the queue pair that earlier orders have made, because it is not needed any more.
struct DropPath {};

// The queue pair in use is fenced. The result is in the order itself.
using FencePath = std::shared_ptr<FenceOrder>;

struct PathOrder {
  std::uint8_t path = 0;
  std::uint32_t generation = 0;
  bool prepares = false;  // as OfferPath::prepares; the result says the same
  std::variant<MakePath, ConnectPath, DropPath, FencePath> what;
};

// --- Results of the control thread ---

// The order has been carried out. `resources` are ready for use after a MakePath with an offer, and
// after a ConnectPath.
struct PathMade {
  std::uint8_t path = 0;
  std::uint32_t generation = 0;
  bool prepares = false;
  wire::PathOffer offer = {};    // of a MakePath without an offer
  wire::PathAnswer answer = {};  // of one with an offer
  std::uint32_t window_key = 0;  // of this end's window; 0: the peer may not write
  std::unique_ptr<PathResources> resources = {};
};
struct PathNotMade {
  std::uint8_t path = 0;
  std::uint32_t generation = 0;
  bool prepares = false;
  std::string why;  // a clause that names this end's port
};

// The device has reported an error of a path's queue pair, or of its completion queue.
struct QueueFailed {
  std::uint8_t path = 0;
  std::uint32_t qpn = 0;   // of the queue pair
  const char* event = "";  // a literal
};

using PathMail = std::variant<PathMessage, PathMade, PathNotMade, QueueFailed>;

}  // namespace beeline
