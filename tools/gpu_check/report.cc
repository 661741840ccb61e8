// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/report.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace beeline::gpu {

void ReportSocket::send(const Report& report) const {
  while (::send(fd_.get(), &report, sizeof(report), MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

void ReportSocket::send(ReportKind kind, std::string_view text) const {
  Report report{.kind = kind};
  const std::size_t length = std::min(text.size(), report.text.size() - 1);
  std::copy_n(text.begin(), length, report.text.begin());
  send(report);
}

std::optional<Report> ReportSocket::receive() const {
  Report report{};
  ssize_t got = 0;
  do {
    got = ::recv(fd_.get(), &report, sizeof(report), 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(report))) return std::nullopt;
  report.text.back() = '\0';
  return report;
}

std::optional<ReportSocketPair> make_report_sockets() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  return ReportSocketPair{ReportSocket(UniqueFd(ends[0])), ReportSocket(UniqueFd(ends[1]))};
}

}  // namespace beeline::gpu
