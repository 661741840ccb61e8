// SPDX-License-Identifier: Apache-2.0
//
// The connection of one HTTP client: one request, one reply. It never waits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/problem.h"
#include "tools/export/http_message.h"

namespace beeline::exporter {

// A client has so long for all of it: to send its request, to read the reply, and to close.
inline constexpr std::int64_t kClientTimeNs = 5 * kNsPerSec;

using MetricsText = std::function<Outcome<std::string>()>;

// Lifecycle: from accept() on. Threads: one.
class HttpConnection {
 public:
  explicit HttpConnection(UniqueFd socket, std::int64_t now_ns) noexcept
      : socket_(std::move(socket)), deadline_ns_(now_ns + kClientTimeNs) {}

  int fd() const noexcept { return socket_.get(); }
  // The events for which poll() has to wait.
  short wanted() const noexcept;
  // After poll() has reported something: does one step.
  void go_on(const MetricsText& metrics);
  bool is_over() const noexcept { return phase_ == Phase::kOver; }
  std::int64_t deadline_ns() const noexcept { return deadline_ns_; }

 private:
  enum class Phase : std::uint8_t {
    kReads,
    kWrites,
    // Everything was sent. What the client still sends is thrown away until it closes: to close
    // with unread data would reset the connection, and the client could lose the reply.
    kDrains,
    kOver,
  };

  void read(const MetricsText& metrics);
  void write() noexcept;

  UniqueFd socket_;
  std::int64_t deadline_ns_;
  Phase phase_ = Phase::kReads;
  std::string received_;
  std::string reply_;
  std::size_t sent_ = 0;
};

}  // namespace beeline::exporter
