// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/line_stream.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/base/clock.h"

namespace beeline::doctor {
namespace {

constexpr std::int64_t kLongestWaitMs = 3'600'000;
constexpr const char* kEnded = "has ended";

std::string failure_text(int sys_errno) {
  if (sys_errno == EPIPE || sys_errno == ECONNRESET) return kEnded;
  return fmt::format("cannot be reached: {}", std::strerror(sys_errno));
}

}  // namespace

Outcome<void> LineStream::send(const std::string& line) {
  const std::string whole = line + "\n";
  for (std::size_t sent = 0; sent < whole.size();) {
    const ssize_t n = ::write(out_.get(), whole.data() + sent, whole.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(failure_text(errno));
    sent += static_cast<std::size_t>(n);
  }
  return {};
}

// False: nothing came within the time.
Outcome<bool> LineStream::read_some(int timeout_ms, std::size_t longest) {
  pollfd waiting = {.fd = in_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, timeout_ms) <= 0) return false;
  std::array<char, 65536> part;  // NOLINT: written before it is read
  const ssize_t n = ::read(in_.get(), part.data(), part.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (n < 0) return fail(failure_text(errno));
  if (n == 0) return fail(kEnded);
  text_.append(part.data(), static_cast<std::size_t>(n));
  if (text_.size() > longest) return fail("sends a line that is too long");
  return true;
}

Outcome<std::string> LineStream::receive(std::int64_t deadline_ns, std::size_t longest) {
  for (;;) {
    if (const std::size_t end = text_.find('\n'); end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      return line;
    }
    const std::int64_t left_ms = (deadline_ns - now_ns()) / kNsPerMs;
    if (left_ms < 0) return fail("does not answer");
    BL_TRY(read_some(static_cast<int>(std::min(left_ms, kLongestWaitMs)) + 1, longest));
  }
}

bool LineStream::is_readable() {
  pollfd waiting = {.fd = in_.get(), .events = POLLIN, .revents = 0};
  return text_.find('\n') != std::string::npos || ::poll(&waiting, 1, 0) > 0;
}

}  // namespace beeline::doctor
