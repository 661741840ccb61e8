// SPDX-License-Identifier: Apache-2.0
#include "tools/ranks/line_stream.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/base/clock.h"

namespace beeline::ranks {
namespace {

constexpr std::int64_t kLongestWaitMs = 3'600'000;  // fits into the int of poll()

Failure<Problem> failed(int sys_errno) {
  if (sys_errno == 0 || sys_errno == EPIPE || sys_errno == ECONNRESET) {
    return fail(Problem("has ended"));
  }
  return fail(Problem(fmt::format("cannot be reached: {}", std::strerror(sys_errno))));
}

}  // namespace

Outcome<void> LineStream::send(const std::string& line) {
  const std::string whole = line + "\n";
  for (std::size_t sent = 0; sent < whole.size();) {
    const char* const rest = whole.data() + sent;
    const std::size_t left = whole.size() - sent;
    const ssize_t n =
        out_ ? ::write(out_.get(), rest, left) : ::send(in_.get(), rest, left, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno);
    sent += static_cast<std::size_t>(n);
  }
  return {};
}

Outcome<void> LineStream::read_for(int timeout_ms) {
  pollfd waiting = {.fd = in_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, timeout_ms) <= 0) return {};
  std::array<char, 65536> part;  // NOLINT: written before it is read
  const ssize_t n = out_ ? ::read(in_.get(), part.data(), part.size())
                         : ::recv(in_.get(), part.data(), part.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (n <= 0) return failed(n < 0 ? errno : 0);
  text_.append(part.data(), static_cast<std::size_t>(n));
  if (is_too_long()) return fail(Problem("sends a line that is too long"));
  return {};
}

bool LineStream::is_too_long() const { return std::min(text_.find('\n'), text_.size()) > longest_; }

std::optional<std::string> LineStream::next() {
  const std::size_t end = text_.find('\n');
  if (end == std::string::npos || end > longest_) return std::nullopt;
  std::string line = text_.substr(0, end);
  text_.erase(0, end + 1);
  return line;
}

Outcome<std::string> LineStream::receive(std::int64_t deadline_ns) {
  for (;;) {
    if (std::optional<std::string> line = next()) return *std::move(line);
    const std::int64_t left_ms = (deadline_ns - now_ns()) / kNsPerMs;
    if (left_ms < 0) return fail(Problem(Errc::kTimeout, "does not answer"));
    BL_TRY(read_for(static_cast<int>(std::min(left_ms, kLongestWaitMs)) + 1));
  }
}

bool LineStream::is_readable() {
  pollfd waiting = {.fd = in_.get(), .events = POLLIN, .revents = 0};
  return text_.find('\n') != std::string::npos || ::poll(&waiting, 1, 0) > 0;
}

}  // namespace beeline::ranks
