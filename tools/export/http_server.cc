// SPDX-License-Identifier: Apache-2.0
#include "tools/export/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

namespace beeline::exporter {
namespace {

// Where there are no descriptors left, accept() would fail again and again without waiting.
constexpr std::int64_t kAcceptPauseNs = 100 * kNsPerMs;
constexpr int kWaitingClients = 128;  // that the kernel keeps until they are accepted

Failure<Problem> cannot_listen(int port, int error) {
  const char* const advice = error == EADDRINUSE ? "choose another port, or 0 for a free one"
                             : error == EACCES   ? "choose a port above 1023"
                                                 : "choose another port";
  return fail(Problem(fmt::format("--http: cannot listen at 127.0.0.1:{}: {}; {}", port,
                                  std::generic_category().message(error), advice)));
}

int milliseconds_until(std::int64_t end_ns, std::int64_t now_ns) {
  constexpr std::int64_t kLongestMs = 60'000;
  const std::int64_t left_ms = (end_ns - now_ns + kNsPerMs - 1) / kNsPerMs;
  return static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, kLongestMs));
}

}  // namespace

Outcome<HttpServer> HttpServer::listen(int port) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener) return cannot_listen(port, errno);
  // The connections of a former process that has just ended do not keep the port.
  const int yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const general = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (::bind(listener.get(), general, length) != 0 ||
      ::listen(listener.get(), kWaitingClients) != 0 ||
      ::getsockname(listener.get(), general, &length) != 0) {
    return cannot_listen(port, errno);
  }
  return HttpServer(std::move(listener), ntohs(address.sin_port));
}

bool HttpServer::serve_until(std::int64_t end_ns, int stop, const MetricsText& metrics) {
  do {
    if (step(end_ns, stop, metrics)) return true;
  } while (now_ns() < end_ns);
  return false;
}

bool HttpServer::step(std::int64_t end_ns, int stop, const MetricsText& metrics) {
  std::int64_t now = now_ns();
  const bool accepts = now >= accepts_again_ns_;
  if (!accepts) end_ns = std::min(end_ns, accepts_again_ns_);
  // poll() ignores negative descriptors.
  std::vector<pollfd> waits = {{stop, POLLIN, 0}, {accepts ? listener_.get() : -1, POLLIN, 0}};
  for (const HttpConnection& client : clients_) {
    waits.push_back({client.fd(), client.wanted(), 0});
    end_ns = std::min(end_ns, client.deadline_ns());
  }
  if (::poll(waits.data(), waits.size(), milliseconds_until(end_ns, now)) > 0) {
    if (waits[0].revents != 0) return true;
    std::size_t at = 2;
    for (HttpConnection& client : clients_) {
      if (waits[at++].revents != 0) client.go_on(metrics);
    }
  }
  now = now_ns();
  end_late_ones(now);
  if (waits[1].revents != 0) accept_all(now);
  return false;
}

void HttpServer::accept_all(std::int64_t now_ns) {
  for (int tries = 0; tries < kWaitingClients; ++tries) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      const int error = errno;
      if (error == EINTR || error == ECONNABORTED) continue;
      if (error != EAGAIN && error != EWOULDBLOCK) accepts_again_ns_ = now_ns + kAcceptPauseNs;
      return;
    }
    if (clients_.size() >= kMostClients) clients_.pop_front();
    clients_.emplace_back(std::move(socket), now_ns);
  }
}

void HttpServer::end_late_ones(std::int64_t now_ns) {
  clients_.remove_if([&](const HttpConnection& client) {
    return client.is_over() || client.deadline_ns() <= now_ns;
  });
}

}  // namespace beeline::exporter
