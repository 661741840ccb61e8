// SPDX-License-Identifier: Apache-2.0
//
// A control channel is a stream of frames: the length of the body (4 bytes), its type (2), zero
// (2), then the body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "plugin/wire/message_bytes.h"

namespace beeline::wire {

enum class MessageType : std::uint16_t {
  kHello = 1,  // a dialer introduces itself
  kHelloAck,   // and is welcome
  kRefuse,     // or is not
  kConnect,    // a comm is wanted
  kAccept,     // and made
  kReady,      // at both ends
  kReject,     // or not made, or given up
  kGoodbye,    // a comm is closed
};
// "CONNECT"; for people.
const char* to_string(MessageType type) noexcept;

inline constexpr std::size_t kFrameHeadBytes = 8;
inline constexpr std::size_t kMaxBodyBytes = 65536;
// Of who has not introduced itself: no more is kept for a stranger.
inline constexpr std::size_t kMaxHelloBytes = 512;

struct Frame {
  MessageType type = MessageType::kHello;
  Bytes body;
};

// Puts the head in front.
Bytes make_frame(MessageType type, const Bytes& body);

// Cuts a stream into frames.
class FrameSplitter {
 public:
  void append(ByteView bytes);
  // Nothing: it is not all there yet. kProtocol: unknown type, or longer than `most`. A head that
  // is wrong is noticed before its body has come.
  Result<std::optional<Frame>> next(std::size_t most = kMaxBodyBytes);
  // Bytes of a frame that has not ended.
  std::size_t pending() const noexcept { return bytes_.size() - used_; }

 private:
  Bytes bytes_;
  std::size_t used_ = 0;  // of bytes_, from its start
};

}  // namespace beeline::wire
