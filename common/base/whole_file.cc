// SPDX-License-Identifier: Apache-2.0
#include "common/base/whole_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "common/base/fd.h"

namespace beeline {
namespace {

// A pipe that gives a byte now and then must not hold the reader for ever.
constexpr int kMostSilences = 10;

std::string why(int sys_errno) { return std::generic_category().message(sys_errno); }

}  // namespace

Outcome<std::string> read_whole_file(const std::string& path, std::size_t max_bytes,
                                     std::chrono::milliseconds silence) {
  // A pipe is opened without waiting for a writer.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return fail(path + ": cannot be opened: " + why(errno));
  const auto deadline = std::chrono::steady_clock::now() + kMostSilences * silence;
  std::string text;
  std::array<char, 65536> piece{};
  for (;;) {
    pollfd readable{.fd = file.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(silence.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      return fail(path + ": no data arrived for " + std::to_string(silence.count()) +
                  " ms; check that a program writes to it");
    }
    if (silence >= silence.zero() && std::chrono::steady_clock::now() > deadline) {
      return fail(path + ": its end has not come for " +
                  std::to_string(kMostSilences * silence.count()) + " ms; is it the right file?");
    }
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got == 0) return text;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return fail(path + ": cannot be read: " + why(errno));
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > max_bytes) {
      return fail(path + ": larger than " + std::to_string(max_bytes >> 20) +
                  " MiB; is it the right file?");
    }
  }
}

}  // namespace beeline
