// SPDX-License-Identifier: Apache-2.0
//
// The messages between peers and their hub. Their sockets are SOCK_SEQPACKET, so a frame arrives
// completely or not at all.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace beeline::test {

inline constexpr size_t kMaxFrame = 65536;

enum class FrameKind : uint32_t { kMessage, kMeet, kKill, kAnswer, kDone, kFailed };

struct Head {
  FrameKind kind;
  uint32_t peer;  // to the hub: the receiver or the victim; from the hub: the sender
};

struct Frame {
  Head head;
  std::string body;
};

inline bool send_frame(int line, const Head& head, const std::string& body) {
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  bytes += body;
  return ::send(line, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

// False at the end of the connection. A process that ends with unread frames resets the socket. The
// kernel reports that reset before it returns the frames that the process has sent.
inline bool receive_frame(int line, Frame* frame) {
  std::string bytes(kMaxFrame, '\0');
  ssize_t got = 0;
  do {
    got = ::recv(line, bytes.data(), bytes.size(), 0);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < static_cast<ssize_t>(sizeof(Head))) return false;
  std::memcpy(&frame->head, bytes.data(), sizeof(Head));
  frame->body = bytes.substr(sizeof(Head), static_cast<size_t>(got) - sizeof(Head));
  return true;
}

}  // namespace beeline::test
