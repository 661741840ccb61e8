// SPDX-License-Identifier: Apache-2.0
//
// Reports on a port over which a connection has failed: its state, changes and history.
#include <cerrno>

#include "common/base/clock.h"
#include "plugin/device/port_report.h"
#include "tests/support/catch.h"

namespace beeline {
namespace {

using verbs::EventKind;

constexpr std::int64_t kCalmUntil = 100 * kNsPerSec;
constexpr std::int64_t kNow = 110 * kNsPerSec;

Gid gid_ending_in(std::uint8_t last) {
  Gid gid = {0xfe, 0x80};
  gid.back() = last;
  return gid;
}

OwnAddress address() {
  OwnAddress own;
  own.gid = {.index = 3, .gid = gid_ending_in(1)};
  own.pkey = {.index = 0, .pkey = 0xffff};
  own.lid = 5;
  return own;
}
OwnPortState unchanged() {
  return {.state = IBV_PORT_ACTIVE, .lid = 5, .gid = gid_ending_in(1), .pkey = 0xffff};
}

PortReport report(const OwnPortState& port, const PortHistory& history = {}) {
  return report_on_port(port, address(), history, kCalmUntil, kNow);
}
std::string trouble(const OwnPortState& port, const PortHistory& history = {}) {
  return report(port, history).trouble;
}

TEST_CASE("port report: an unchanged port has no trouble", "[unit][device]") {
  CHECK(trouble(unchanged()).empty());
  CHECK(report(unchanged()).remark.empty());
}

TEST_CASE("port report: a port that cannot be queried is at fault", "[unit][device]") {
  CHECK(trouble({.query_errno = ENODEV}) == "its port cannot be queried (No such device)");
}

TEST_CASE("port report: changes are named", "[unit][device]") {
  OwnPortState port = unchanged();
  port.state = IBV_PORT_DOWN;
  CHECK(trouble(port) == "its port is DOWN");
  port = unchanged();
  port.gid = Gid{};
  CHECK(trouble(port) == "its GID 3, fe80::1, is gone");
  port.gid = gid_ending_in(2);
  CHECK(trouble(port) == "its GID 3, fe80::1, has become fe80::2");
  port = unchanged();
  port.pkey = 0x8001;
  CHECK(trouble(port) == "its P_Key 0, 0xffff, has become 0x8001");
  port.pkey = 0;
  port.lid = 7;
  CHECK(trouble(port) == "its P_Key 0, 0xffff, is gone and its LID 5 has become 7");
}

TEST_CASE("port report: a port that comes up slowly is not up", "[unit][device]") {
  OwnPortState port = unchanged();
  port.state = IBV_PORT_ACTIVE_DEFER;
  CHECK(trouble(port).empty());
  port.state = IBV_PORT_ARMED;
  CHECK(trouble(port) == "its port is ARMED");
}

TEST_CASE("port report: a port that was down counts if data has not moved since",
          "[unit][device]") {
  PortHistory history;
  history.record(EventKind::kPortError, kCalmUntil - 20 * kNsPerSec);
  history.record(EventKind::kPortActive, kCalmUntil - 10 * kNsPerSec);
  CHECK(trouble(unchanged(), history).empty());
  history.record(EventKind::kPortError, kCalmUntil - kNsPerSec);
  history.record(EventKind::kPortActive, kCalmUntil + kNsPerSec);
  CHECK(trouble(unchanged(), history) == "its port was down until 9.0 s ago");
  history.record(EventKind::kPortError, kNow - kNsPerSec);
  CHECK(trouble(unchanged(), history) == "its port reported an error 1.0 s ago");
}

TEST_CASE("port report: another address that came or went is a remark", "[unit][device]") {
  PortHistory history;
  history.record(EventKind::kGidChange, kCalmUntil - kNsPerSec);
  CHECK(report(unchanged(), history).remark.empty());
  history.record(EventKind::kGidChange, kNow - kNsPerSec);
  CHECK(report(unchanged(), history).trouble.empty());
  CHECK(report(unchanged(), history).remark == "the GID table changed 1.0 s ago");
  history.record(EventKind::kPkeyChange, kNow - 2 * kNsPerSec);
  CHECK(report(unchanged(), history).remark ==
        "the GID table changed 1.0 s ago and the P_Key table changed 2.0 s ago");
}

TEST_CASE("port report: attributes that the plugin did not choose are not compared",
          "[unit][device]") {
  OwnPortState port = unchanged();
  port.gid = Gid{};
  port.pkey = 0;
  port.lid = 9;
  CHECK(report_on_port(port, {}, PortHistory{}, kCalmUntil, kNow).trouble.empty());
}

}  // namespace
}  // namespace beeline
