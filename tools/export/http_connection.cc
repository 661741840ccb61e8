// SPDX-License-Identifier: Apache-2.0
#include "tools/export/http_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

namespace beeline::exporter {
namespace {

bool is_only_late(int error) noexcept {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

Reply answer(const Request& request, const MetricsText& metrics) {
  switch (request.asked) {
    case Asked::kMetrics: {
      Outcome<std::string> text = metrics();
      if (!text) return {.status = 500, .body = text.error().text + "\n"};
      return {.status = 200, .body = *std::move(text), .is_head = request.is_head};
    }
    case Asked::kOtherPath:
      return {.status = 404, .body = "the metrics are at /metrics\n", .is_head = request.is_head};
    case Asked::kOtherMethod: return {.status = 405, .body = "only GET and HEAD\n"};
    case Asked::kOtherHost:
      return {.status = 421,
              .body = "only for http://localhost, http://127.0.0.1 and http://[::1]\n",
              .is_head = request.is_head};
    case Asked::kNotAll:
    case Asked::kNonsense: break;
  }
  return {.status = 400, .body = "not a request of HTTP/1.1, or more than 8 KiB\n"};
}

}  // namespace

short HttpConnection::wanted() const noexcept {
  return phase_ == Phase::kWrites ? POLLOUT : POLLIN;
}

void HttpConnection::go_on(const MetricsText& metrics) {
  if (phase_ == Phase::kWrites) return write();
  read(metrics);
}

void HttpConnection::read(const MetricsText& metrics) {
  char buffer[kMostRequestBytes];
  const ssize_t length = ::recv(fd(), buffer, sizeof buffer, 0);
  if (length < 0 && is_only_late(errno)) return;
  if (length <= 0) {
    phase_ = Phase::kOver;
    return;
  }
  if (phase_ == Phase::kDrains) return;
  received_.append(buffer, static_cast<std::size_t>(length));
  const Request request = parse_request(received_);
  if (request.asked == Asked::kNotAll) return;
  reply_ = reply_text(answer(request, metrics));
  phase_ = Phase::kWrites;
  write();
}

void HttpConnection::write() noexcept {
  const std::string_view rest = std::string_view(reply_).substr(sent_);
  const ssize_t length = ::send(fd(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (length < 0) {
    if (!is_only_late(errno)) phase_ = Phase::kOver;
    return;
  }
  sent_ += static_cast<std::size_t>(length);
  if (sent_ < reply_.size()) return;
  phase_ = ::shutdown(fd(), SHUT_WR) == 0 ? Phase::kDrains : Phase::kOver;
}

}  // namespace beeline::exporter
