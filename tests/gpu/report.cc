// SPDX-License-Identifier: Apache-2.0
//
// See report.h.
#include "tests/gpu/report.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace beeline::gpu {

void Line::say(const Report& report) const {
  while (send(fd_.get(), &report, sizeof(report), MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

void Line::say(ReportKind kind, std::string_view text) const {
  Report report{.kind = kind};
  const std::size_t length = std::min(text.size(), report.text.size() - 1);
  std::copy_n(text.begin(), length, report.text.begin());
  say(report);
}

std::optional<Report> Line::hear() const {
  Report report{};
  ssize_t got = 0;
  do {
    got = recv(fd_.get(), &report, sizeof(report), 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(report))) return std::nullopt;
  report.text.back() = '\0';
  return report;
}

std::optional<LinePair> make_lines() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  return LinePair{Line(UniqueFd(ends[0])), Line(UniqueFd(ends[1]))};
}

}  // namespace beeline::gpu
