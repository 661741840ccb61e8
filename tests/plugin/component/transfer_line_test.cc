// SPDX-License-Identifier: Apache-2.0
//
// Credit lines: the words that the fast functions write and read match the struct, and sends find
// the lines of a receive in any order.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "plugin/wire/credit.h"
#include "tests/plugin/component/transfer_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/wire_samples.h"

namespace beeline::test {
namespace {

constexpr std::array<std::uint32_t, wire::kMaxRails> kKeys = {11, 12, 13, 14, 15, 16, 17, 18};

wire::CreditLine struct_line(wire::Rails rails) {
  wire::CreditLine line = {.address = 0x7f00'1234'5678,
                           .capacity = 0xfedc'ba98,
                           .tag = -7,
                           .rkeys = kKeys,
                           .index = 5,
                           .count = 8,
                           .notices = 1,
                           .epoch = 0x9a,
                           .number = 0x8765'4321,
                           .sum = 0};
  wire::seal(line, rails);
  return line;
}

wire::CreditLine written_line(wire::Rails rails) {
  wire::CreditLine line = {};
  wire::write_line(
      line, {.address = 0x7f00'1234'5678, .capacity = 0xfedc'ba98, .tag = -7, .rkeys = &kKeys},
      wire::order_of(0x8765'4321, 5, 8, 0x9a), rails);
  return line;
}

}  // namespace

TEST_CASE("line: positions wrap around after 2^32 lines, without changing index and count",
          "[unit][transfer]") {
  CHECK(wire::order_after(wire::order_of(UINT32_MAX, 0, 1, 7)) == wire::order_of(0, 0, 1, 7));
  CHECK(wire::order_after(wire::order_of(UINT32_MAX, 6, 8, 7)) == wire::order_of(0, 7, 8, 7));
  CHECK(wire::order_after(wire::order_of(9, 7, 8, 0)) == wire::order_of(10, 0, 8, 0));
}

TEST_CASE("line: it is written as the struct says, with the keys of many rails",
          "[unit][transfer]") {
  const wire::CreditLine as_struct = struct_line(wire::Rails::kMany);
  const wire::CreditLine as_words = written_line(wire::Rails::kMany);
  CHECK(std::memcmp(&as_struct, &as_words, sizeof as_words) == 0);
}

TEST_CASE("line: with few rails the other keys are neither written nor summed",
          "[unit][transfer]") {
  wire::CreditLine line = written_line(wire::Rails::kFew);
  CHECK(line.rkeys[1] == 12);
  CHECK(line.rkeys[2] == 0);
  line.rkeys[5] = 4711;
  wire::LineFacts facts = {};
  CHECK(wire::read_line(line, 0x8765'4320, wire::Rails::kFew, facts));
  CHECK_FALSE(wire::read_line(line, 0x8765'4320, wire::Rails::kMany, facts));
}

TEST_CASE("line: what is read is what was written", "[unit][transfer]") {
  for (const wire::Rails rails : {wire::Rails::kFew, wire::Rails::kMany}) {
    const wire::CreditLine line = written_line(rails);
    CHECK(wire::is_there(line, 0x8765'4320));
    CHECK_FALSE(wire::is_there(line, 0x8765'4321));
    wire::LineFacts facts = {};
    REQUIRE(wire::read_line(line, 0x8765'4320, rails, facts));
    CHECK(facts.address == 0x7f00'1234'5678);
    CHECK(facts.capacity == 0xfedc'ba98);
    CHECK(facts.tag == -7);
    CHECK(facts.rkey == 11);
    CHECK(facts.number == 0x8765'4321);
    CHECK(facts.index == 5);
    CHECK(facts.count == 8);
  }
}

TEST_CASE("line: a single stale word is noticed", "[unit][transfer]") {
  for (const wire::Rails rails : {wire::Rails::kFew, wire::Rails::kMany}) {
    const wire::CreditLine line = written_line(rails);
    for (std::size_t word = 0; word < 8; ++word) {
      if (rails == wire::Rails::kFew && word >= 3 && word <= 5) continue;
      INFO("word " << word);
      wire::CreditLine torn = line;
      reinterpret_cast<unsigned char*>(&torn)[word * 8 + 1] ^= 0x40;
      wire::LineFacts facts = {};
      CHECK_FALSE(wire::read_line(torn, 0x8765'4320, rails, facts));
    }
  }
}

// All orders in which three sends may take the three lines of a receive.
TEST_CASE("line: a group's lines are taken in any order", "[component][transfer]") {
  std::array<int, 3> order = {0, 1, 2};
  TransferRig rig;
  Storage from = rig.storage(3, 0);
  Storage into = rig.storage(3, 0xee);
  for (int i = 0; i < 3; ++i) from.data()[i] = static_cast<unsigned char>('a' + i);
  do {
    std::array<ReceiveBuffer, 3> buffers;
    for (int i = 0; i < 3; ++i) {
      buffers[static_cast<std::size_t>(i)] = {
          .data = into.data() + i, .capacity = 1, .tag = 100 + i, .memory = &into.handle()};
    }
    const auto receive = irecv(rig.receiver(), buffers);
    REQUIRE(receive);
    REQUIRE(*receive != nullptr);
    std::memset(into.data(), 0xee, 3);
    for (const int i : order) {
      rig.finish(rig.send(from, 1, 100 + i, static_cast<std::size_t>(i)));
    }
    CHECK(rig.finish_all(*receive, 3) == std::vector<int>{1, 1, 1});
    CHECK(std::memcmp(into.data(), "abc", 3) == 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

// The slot of a group's first line is reused as soon as its message has arrived, which must not
// hide the rest of the group.
TEST_CASE("line: a group stays open while the ring wraps around", "[component][transfer]") {
  TransferRig rig;
  Storage from = rig.storage(1, 0x5a);
  Storage into = rig.storage(1);
  const ReceiveBuffer one = {
      .data = into.data(), .capacity = 1, .tag = 0, .memory = &into.handle()};
  std::vector<ReceiveBuffer> group(2, one);
  group[1].tag = 1;
  const auto open = irecv(rig.receiver(), group);
  REQUIRE(open);
  REQUIRE(*open != nullptr);
  rig.finish(rig.send(from, 1, 0));
  CHECK_FALSE(*test_once(**open, nullptr));
  // As many more as fit, which nobody waits for. The last uses the slot of the group's first line.
  std::size_t more = 0;
  for (;; ++more) {
    const auto single = irecv(rig.receiver(), {&one, 1}, Need::kNothing);
    REQUIRE(single);
    if (*single == nullptr) break;
    REQUIRE(*test_once(**single, nullptr));
  }
  CHECK(more == wire::kMaxLines - 1);
  rig.finish(rig.send(from, 1, 1));
  CHECK(rig.finish_all(*open, 2) == std::vector<int>{1, 1});
}

// The receive queue holds the rest of one batch, one receive for every line in flight, and one more
// batch.
TEST_CASE("line: there is room for the receives that are posted in advance",
          "[component][transfer]") {
  TransferRig rig;
  Storage from = rig.storage(1, 0x5a);
  Storage into = rig.storage(1);
  const ReceiveBuffer one = {
      .data = into.data(), .capacity = 1, .tag = 0, .memory = &into.handle()};
  constexpr std::size_t kSent = 29;
  for (std::size_t i = 0; i < wire::kMaxLines + kSent; ++i) {
    if (i >= wire::kMaxLines) rig.finish(rig.send(from, 1, 0));
    Result<Request*> receive = irecv(rig.receiver(), {&one, 1}, Need::kNothing);
    // The first call may only have polled completions.
    for (int tries = 0; receive && *receive == nullptr && tries < 1000; ++tries) {
      receive = irecv(rig.receiver(), {&one, 1}, Need::kNothing);
    }
    REQUIRE(receive);
    REQUIRE(*receive != nullptr);
    REQUIRE(*test_once(**receive, nullptr));
  }
  const std::array<ReceiveBuffer, 4> group = {one, one, one, one};
  const Result<Request*> more = irecv(rig.receiver(), group);
  REQUIRE(more);
  CHECK(*more == nullptr);
}

TEST_CASE("line: an irecv with an invalid buffer grants nothing", "[component][transfer]") {
  TransferRig rig;
  Storage from = rig.storage(3, 0x5a);
  Storage into = rig.storage(3);
  std::array<ReceiveBuffer, 3> group;
  for (std::size_t i = 0; i < 3; ++i) {
    group[i] = {.data = into.data() + i,
                .capacity = 1,
                .tag = static_cast<int>(i),
                .memory = &into.handle()};
  }
  std::array<ReceiveBuffer, 3> wrong = group;
  SECTION("no memory") { wrong[2].memory = nullptr; }
  SECTION("too large") { wrong[1].capacity = wire::kMaxMessageBytes + 1; }
  const Result<Request*> refused = irecv(rig.receiver(), wrong);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::kInvalid);
  CHECK(*isend(rig.sender(), from, 1, 0) == nullptr);
  const Result<Request*> receive = irecv(rig.receiver(), group);
  REQUIRE(receive);
  REQUIRE(*receive != nullptr);
  for (int i = 0; i < 3; ++i) {
    rig.finish(rig.send(from, 1, i, static_cast<std::size_t>(i)));
  }
  CHECK(rig.finish_all(*receive, 3) == std::vector<int>{1, 1, 1});
}

TEST_CASE("line: a message longer than its line allows is cut", "[component][transfer]") {
  TransferRig rig;
  const LogCapture log;
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64, 0xee);
  for (const std::size_t more : {1U, 54U}) {
    Request* const receive = rig.receive(into, 10, 0);
    rig.finish(rig.send(from, 10 + more, 0));
    CHECK(rig.finish(receive) == 10);
    CHECK(into.data()[9] == 0x5a);
    CHECK(into.data()[10] == 0xee);
  }
  CHECK(log.count(LogLevel::kWarn) == 1);
}

TEST_CASE("line: a send that the device refuses returns no request", "[component][transfer]") {
  static ibv_send_wr* seen = nullptr;
  TransferRig rig;
  const LogCapture log;
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64, 0xee);
  (void)rig.receive(into, 64, 0);
  ibv_context* const context = rig.sender().paths()[0].resources->queues.cq->context;
  auto* const real = context->ops.post_send;
  context->ops.post_send = [](ibv_qp*, ibv_send_wr* wr, ibv_send_wr** refused) {
    seen = *refused = wr;
    return ENOMEM;
  };
  void* made = &made;
  const Comm::Credit credit = rig.sender().look_for_credit();
  REQUIRE(credit.state == Comm::Credit::kHasCome);
  const SendComm::Begun begun =
      rig.sender().begin_isend(credit.order, from.data(), 64, 0, &from.handle(), &made);
  Errc code = Errc::kOk;
  if (begun == SendComm::Begun::kPrepared) code = rig.sender().post_prepared<Paths::kOne>();
  context->ops.post_send = real;
  REQUIRE(begun == SendComm::Begun::kPrepared);
  CHECK(seen != nullptr);
  CHECK(code == Errc::kSystem);
  CHECK(made == nullptr);
  CHECK(log.count(LogLevel::kWarn) == 1);
  const Result<Request*> next = isend(rig.sender(), from, 64, 0);  // the comm has failed for good
  CHECK_FALSE(next);
  CHECK(into.data()[0] == 0xee);
  rig.close_sender();
  CHECK(rig.sender_link().said == 0);  // no message was sent
}

TEST_CASE("line: an irecv whose grant the device refuses makes no request",
          "[component][transfer]") {
  TransferRig rig;
  const LogCapture log;
  Storage into = rig.storage(64, 0xee);
  (void)rig.receive(into, 64, 0);  // the first irecv of a comm is not a fast one
  ibv_context* const context = rig.receiver().paths()[0].resources->queues.cq->context;
  auto* const real = context->ops.post_send;
  context->ops.post_send = [](ibv_qp*, ibv_send_wr* wr, ibv_send_wr** refused) {
    *refused = wr;
    return ENOMEM;
  };
  RecvComm& receiver = rig.receiver();
  void* made = nullptr;
  const bool is_fast = receiver.enter_if_fast(Role::kReceive, Paths::kOne) &&
                       receiver.begin_grant<Paths::kOne>(64, &into.handle());
  Errc code = Errc::kOk;
  if (is_fast) {
    receiver.write_grant<Paths::kOne>(
        {.data = into.data(), .capacity = 64, .tag = 0, .memory = &into.handle()}, &made);
    code = receiver.post_written<Paths::kOne>();
  }
  context->ops.post_send = real;
  REQUIRE(is_fast);
  CHECK(code == Errc::kSystem);
  CHECK(made == nullptr);
  CHECK(log.count(LogLevel::kWarn) == 1);
}

TEST_CASE("line: a receive that nobody waits for is done at once, and its data arrives",
          "[component][transfer]") {
  TransferRig rig;
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64, 0);
  const ReceiveBuffer buffer = {
      .data = into.data(), .capacity = 64, .tag = 0, .memory = &into.handle()};
  // More often than there are requests and lines, so that both must be reused.
  for (std::size_t round = 0; round < 3 * wire::kMaxLines; ++round) {
    std::memset(into.data(), 0, 64);
    const auto receive = irecv(rig.receiver(), {&buffer, 1}, Need::kNothing);
    REQUIRE(receive);
    REQUIRE(*receive != nullptr);
    CHECK(*test_once(**receive, nullptr));
    rig.finish(rig.send(from, 64, 0));
    CHECK(into.data()[63] == 0x5a);
  }
  // After them, one that is waited for.
  Request* const waited = rig.receive(into, 64, 0);
  CHECK_FALSE(*test_once(*waited, nullptr));
  rig.finish(rig.send(from, 32, 0));
  CHECK(rig.finish(waited) == 32);
}

}  // namespace beeline::test
