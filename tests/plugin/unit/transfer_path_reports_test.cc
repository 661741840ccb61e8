// SPDX-License-Identifier: Apache-2.0
//
// The reports about a path that has failed, and what is sent again.
#include "plugin/transfer/path_reports.h"

#include <array>
#include <cstdint>
#include <vector>

#include "tests/support/catch.h"

namespace beeline {
namespace {

constexpr std::uint32_t kLines = wire::kMaxLines;
constexpr std::uint64_t kBuffers = 0x10'0000;
constexpr std::uint32_t kCapacity = 0x1000;

// Of a path that nothing was granted on.
constexpr LineCarrier kOther = 3;

GrantedLine waiting(std::uint32_t position, wire::ChunkMask arrived = 0) {
  return {.position = position,
          .capacity = kCapacity,
          .address = kBuffers + std::uint64_t{position} * kCapacity,
          .arrived = arrived,
          .carrier = 0,
          .waits = true};
}

wire::ReceiverReport report_on(std::uint32_t next, std::vector<GrantedLine> lines) {
  const auto report = take_receiver_report(next, lines);
  REQUIRE(report);
  CHECK(is_consistent(*report));
  return *report;
}

ChunkFate fate(const wire::ReceiverReport& report, std::uint32_t position, wire::ChunkMask chunks) {
  return resolve_chunks(report, {.position = position, .chunks = chunks});
}

TEST_CASE("reports: chunks have arrived, are missing, or both", "[unit][transfer]") {
  const wire::ReceiverReport report = report_on(12, {waiting(9, 0b0110), waiting(10)});
  CHECK(fate(report, 8, 0b11) == ChunkFate{.arrived = 0b11, .missing = 0});
  CHECK(fate(report, 9, 0b1100) == ChunkFate{.arrived = 0b0100, .missing = 0b1000});
  CHECK(fate(report, 10, 0b1) == ChunkFate{.arrived = 0, .missing = 0b1});
  CHECK(fate(report, 11, 0b1) == ChunkFate{.arrived = 0b1, .missing = 0});
}

TEST_CASE("reports: a line that was granted after the report is missing", "[unit][transfer]") {
  const wire::ReceiverReport report = report_on(12, {});
  CHECK(fate(report, 12, 0b1).missing == 0b1);
  CHECK(fate(report, 12 + kLines, 0b1).missing == 0b1);
}

TEST_CASE("reports: a line whose place was granted anew has arrived", "[unit][transfer]") {
  // The next line of its place is missing.
  const wire::ReceiverReport report = report_on(5 + kLines, {waiting(4 + kLines, 0b1)});
  CHECK(fate(report, 4, 0b11).arrived == 0b11);
  CHECK(fate(report, 4 + kLines, 0b11) == ChunkFate{.arrived = 0b01, .missing = 0b10});
}

TEST_CASE("reports: positions wrap around", "[unit][transfer]") {
  const std::uint32_t last = 0xffff'ffff;
  const wire::ReceiverReport report = report_on(2, {waiting(last), waiting(0, 0b1)});
  CHECK(fate(report, last - 1, 0b1).arrived == 0b1);
  CHECK(fate(report, last, 0b1).missing == 0b1);
  CHECK(fate(report, 0, 0b11) == ChunkFate{.arrived = 0b01, .missing = 0b10});
  CHECK(fate(report, 1, 0b1).arrived == 0b1);
  CHECK(fate(report, 2, 0b1).missing == 0b1);
}

TEST_CASE("reports: every line of the ring may be missing, 32 of them in part",
          "[unit][transfer]") {
  std::vector<GrantedLine> lines;
  for (std::uint32_t i = 0; i < kLines; ++i) lines.push_back(waiting(i, i < 32 ? 0b1 : 0));
  const wire::ReceiverReport report = report_on(kLines, lines);
  CHECK(fate(report, 31, 0b11).arrived == 0b1);
  CHECK(fate(report, 32, 0b11).arrived == 0);
  CHECK(fate(report, kLines - 1, 0b11).missing == 0b11);

  // To leave one out would be to call missing what has arrived.
  lines[32].arrived = 0b1;
  CHECK_FALSE(take_receiver_report(kLines, lines));
}

TEST_CASE("reports: a report from a message is checked", "[unit][transfer]") {
  wire::ReceiverReport report = report_on(12, {waiting(9, 0b1), waiting(10, 0b1)});
  CHECK(is_consistent(report));
  const auto with = [&report](wire::ReceiverReport::Partial line) {
    wire::ReceiverReport changed = report;
    changed.partial[1] = line;
    return changed;
  };
  CHECK_FALSE(is_consistent(with({.position = 9, .arrived = 0b1})));   // twice
  CHECK_FALSE(is_consistent(with({.position = 10, .arrived = 0})));    // not there in part
  CHECK_FALSE(is_consistent(with({.position = 12, .arrived = 0b1})));  // not granted
  CHECK_FALSE(is_consistent(with({.position = 8, .arrived = 0b1})));   // there as a whole
  report.partial_count = wire::ReceiverReport::kMostPartial + 1;
  CHECK_FALSE(is_consistent(report));
}

// --- Optional receives ---

TEST_CASE("reports: an optional receive whose buffer was granted anew has arrived",
          "[unit][transfer]") {
  std::array lines = {waiting(4), waiting(5), waiting(6)};
  for (GrantedLine& line : lines) line.is_optional = true;
  lines[2].address = lines[0].address - kCapacity / 2;
  const auto report = take_receiver_report(7, lines);
  REQUIRE(report);
  CHECK(report->whole.has(4));
  CHECK_FALSE(report->whole.has(5));
  CHECK_FALSE(report->whole.has(6));  // line 4 came before it
  CHECK_FALSE(lines[0].waits);
  CHECK(lines[1].waits);
}

TEST_CASE("reports: two receives that must arrive may name the same memory", "[unit][transfer]") {
  std::array lines = {waiting(4), waiting(5)};
  lines[1].address = lines[0].address;
  const auto report = take_receiver_report(6, lines);
  REQUIRE(report);
  CHECK_FALSE(report->whole.has(4));
}

TEST_CASE("reports: buffers of no bytes overlap nothing", "[unit][transfer]") {
  std::array lines = {waiting(4), waiting(5)};
  for (GrantedLine& line : lines) line.is_optional = true;
  lines[1].address = lines[0].address + 1;
  lines[1].capacity = 0;
  const auto report = take_receiver_report(6, lines);
  REQUIRE(report);
  CHECK_FALSE(report->whole.has(4));
  CHECK_FALSE(overlaps_reported_line(lines, lines[0].address, 0));
}

TEST_CASE("reports: a buffer that will be written again cannot be granted", "[unit][transfer]") {
  std::array lines = {waiting(4), waiting(5)};
  const std::uint64_t first = lines[0].address;
  CHECK_FALSE(overlaps_reported_line(lines, first, kCapacity));  // nothing was reported
  REQUIRE(take_receiver_report(6, lines));
  CHECK(overlaps_reported_line(lines, first, kCapacity));
  CHECK(overlaps_reported_line(lines, first + kCapacity - 1, 1));
  CHECK_FALSE(overlaps_reported_line(lines, first - 1, 1));
  CHECK_FALSE(overlaps_reported_line(lines, first + std::uint64_t{2} * kCapacity, kCapacity));
  lines[0].waits = false;  // it has come
  CHECK_FALSE(overlaps_reported_line(lines, first, kCapacity));
}

// --- Grants ---

std::vector<LineCarrier> resolved(const wire::SenderReport& report, LineCarrier path,
                                  std::vector<GrantedLine> lines) {
  resolve_grants(report, path, lines);
  std::vector<LineCarrier> carriers;
  carriers.reserve(lines.size());
  for (const GrantedLine& line : lines) carriers.push_back(line.carrier);
  return carriers;
}

wire::SenderReport holding(std::uint32_t taken, const std::vector<std::uint32_t>& held) {
  return take_sender_report(taken, [&held](std::uint32_t position) {
    for (const std::uint32_t one : held) {
      if (one == position) return true;
    }
    return false;
  });
}

TEST_CASE("reports: lines that the sender does not hold are lost", "[unit][transfer]") {
  const wire::SenderReport report = holding(5, {6});
  CHECK(resolved(report, 0, {waiting(4), waiting(5), waiting(6), waiting(7)}) ==
        std::vector{kGrantArrived, kGrantLost, kGrantArrived, kGrantLost});
}

TEST_CASE("reports: lines of other paths, and those known before, are left alone",
          "[unit][transfer]") {
  std::vector<GrantedLine> lines = {waiting(4), waiting(5), waiting(6)};
  lines[0].carrier = kOther;
  lines[1].carrier = kGrantLost;
  lines[2].carrier = kGrantArrived;
  CHECK(resolved(holding(4, {}), 0, lines) == std::vector{kOther, kGrantLost, kGrantArrived});
}

TEST_CASE("reports: a line beyond those that the sender reports on is lost", "[unit][transfer]") {
  // The sender took lines of other paths after its report, so that a place was granted anew.
  const wire::SenderReport report = holding(5, {5, 6});
  CHECK(resolved(report, 0, {waiting(5 + kLines), waiting(6 + kLines)}) ==
        std::vector{kGrantLost, kGrantLost});
}

TEST_CASE("reports: what the sender holds wraps around", "[unit][transfer]") {
  const wire::SenderReport report = holding(0xffff'ffff, {0xffff'ffff, 1});
  CHECK(resolved(report, 0, {waiting(0xffff'fffe), waiting(0xffff'ffff), waiting(0), waiting(1)}) ==
        std::vector{kGrantArrived, kGrantArrived, kGrantLost, kGrantArrived});
}

TEST_CASE("reports: lines that have completed at the sender and are missing are named",
          "[unit][transfer]") {
  const wire::ReceiverReport report = report_on(12, {waiting(9, 0b1), waiting(10), waiting(11)});
  wire::LineSet finished;
  finished.add(8);
  finished.add(9);
  finished.add(11);
  wire::LineSet lost;
  lost.add(9);
  lost.add(11);
  CHECK(missing_but_finished(report, finished) == lost);
  CHECK(missing_but_finished(report, {}).empty());
}

}  // namespace
}  // namespace beeline
