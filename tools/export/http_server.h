// SPDX-License-Identifier: Apache-2.0
//
// Serves the metrics over HTTP to programs on this host. One thread serves all clients, and waits
// for none of them: whoever is slow loses its own connection.
#pragma once

#include <cstdint>
#include <list>
#include <utility>

#include "common/base/fd.h"
#include "common/base/problem.h"
#include "tools/export/http_connection.h"

namespace beeline::exporter {

// With more clients than this, the one that has been connected longest is disconnected.
inline constexpr std::size_t kMostClients = 64;

// Lifecycle: its destructor disconnects all clients. Threads: one.
class HttpServer {
 public:
  // At 127.0.0.1. Port 0 takes one that is free.
  static Outcome<HttpServer> listen(int port);
  int port() const noexcept { return port_; }

  // Serves until that time, or until `stop` can be read. Returns whether it can.
  bool serve_until(std::int64_t end_ns, int stop, const MetricsText& metrics);

 private:
  HttpServer(UniqueFd listener, int port) noexcept : listener_(std::move(listener)), port_(port) {}
  bool step(std::int64_t end_ns, int stop, const MetricsText& metrics);
  void accept_all(std::int64_t now_ns);
  void end_late_ones(std::int64_t now_ns);

  UniqueFd listener_;
  int port_;
  std::int64_t accepts_again_ns_ = 0;
  std::list<HttpConnection> clients_;  // the oldest first
};

}  // namespace beeline::exporter
