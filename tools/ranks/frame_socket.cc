// SPDX-License-Identifier: Apache-2.0
//
// A frame consists of the length of the rest, the kind and the body.
#include "tools/ranks/frame_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/base/clock.h"

namespace beeline::ranks {
namespace {

using Length = std::uint32_t;
constexpr size_t kHead = sizeof(Length) + 1;

}  // namespace

bool FrameSocket::send(FrameKind kind, const std::string& body) {
  const auto length = static_cast<Length>(body.size());
  std::string out(kHead, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  out[sizeof length] = static_cast<char>(kind);
  out += body;
  for (size_t sent = 0; sent < out.size();) {
    const ssize_t n = ::send(fd_.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

bool FrameSocket::read_some() {
  std::array<char, 65536> part;  // NOLINT: written before it is read
  const ssize_t n = ::recv(fd_.get(), part.data(), part.size(), MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  in_.append(part.data(), static_cast<size_t>(n));
  return n > 0 && !announces_too_much();
}

bool FrameSocket::announces_too_much() const {
  if (in_.size() < kHead) return false;
  Length length = 0;
  std::memcpy(&length, in_.data(), sizeof length);
  return length > longest_;
}

std::optional<Frame> FrameSocket::next() {
  if (in_.size() < kHead || announces_too_much()) return std::nullopt;
  Length length = 0;
  std::memcpy(&length, in_.data(), sizeof length);
  if (in_.size() < kHead + length) return std::nullopt;
  Frame frame{static_cast<FrameKind>(in_[sizeof length]), in_.substr(kHead, length)};
  in_.erase(0, kHead + length);
  return frame;
}

std::optional<Frame> FrameSocket::receive(std::int64_t deadline_ns) {
  constexpr std::int64_t kLongestNs = 3600 * kNsPerSec;  // so that it fits into the int of poll()
  for (;;) {
    if (std::optional<Frame> frame = next()) return frame;
    const std::int64_t left = deadline_ns - now_ns();
    if (left <= 0) return std::nullopt;
    pollfd waiting{fd_.get(), POLLIN, 0};
    const auto most = static_cast<int>(std::min(left, kLongestNs) / kNsPerMs + 1);
    if (::poll(&waiting, 1, most) < 0 && errno != EINTR) return std::nullopt;
    if (!read_some()) return next();
  }
}

}  // namespace beeline::ranks
