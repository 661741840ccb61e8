// SPDX-License-Identifier: Apache-2.0
//
// The data path between two ends: credits, messages and notices, and how a goodbye, a dead peer or
// a broken path ends requests in flight.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/plugin/component/device_rig.h"
#include "tests/plugin/component/transfer_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/wire_samples.h"

namespace beeline::test {
namespace {

void paint(Storage& storage, unsigned seed) {
  for (std::size_t i = 0; i < storage.size(); ++i) {
    storage.data()[i] =
        static_cast<unsigned char>((i * 131 + i / 251 + std::size_t{seed} * 17) & 0xff);
  }
}

bool same(Storage& a, std::size_t a_at, Storage& b, std::size_t b_at, std::size_t size) {
  return std::memcmp(a.data() + a_at, b.data() + b_at, size) == 0;
}

void must_keep_failing(Request& request, Errc code) {
  for (int i = 0; i < 3; ++i) {
    const auto failed = test_once(request, nullptr);
    REQUIRE(!failed);
    CHECK(failed.error().code == code);
  }
}

void must_not_send(TransferRig& rig, Storage& from, Errc code) {
  const auto refused = isend(rig.sender(), from, 1, 0);
  REQUIRE(!refused);
  CHECK(refused.error().code == code);
}

}  // namespace

TEST_CASE("transfer: only what the peer has made happen counts as progress",
          "[component][transfer]") {
  TransferRig rig({.paths = GENERATE(1UL, 2UL)});
  Storage from = rig.storage(1 << 20);
  Storage into = rig.storage(1 << 20);
  CHECK(must(isend(rig.sender(), from, from.size(), 5)) == nullptr);  // there is no credit
  Request* const receive = rig.receive(into, into.size(), 5);
  CHECK_FALSE(must(test_once(*receive, nullptr)));
  CHECK(rig.sender_link().progress() == 0);
  CHECK(rig.receiver_link().progress() == 0);
  Request* const send = rig.send(from, from.size(), 5);
  rig.finish(send);
  CHECK(rig.sender_link().progress() > 0);
  rig.finish(receive);
  CHECK(rig.receiver_link().progress() > 0);
}

TEST_CASE("transfer: every way to announce a message delivers it", "[component][transfer]") {
  const auto notify = GENERATE(Notify::kImmediate, Notify::kNoticeAfterRouted, Notify::kNotice);
  TransferRig rig({.notify = notify, .routed_above = 4096});
  Storage from = rig.storage(1 << 20);
  paint(from, 3);
  for (const std::size_t size :
       {0UL, 1UL, 63UL, 64UL, 65UL, 4096UL, 4097UL, 100'001UL, 1UL << 20}) {
    Storage into = rig.storage((1 << 20) + 64, 0xee);
    Request* const receive = rig.receive(into, 1 << 20, 5);
    Request* const send = rig.send(from, size, 5);
    CHECK(rig.finish(send) == static_cast<int>(size));
    CHECK(rig.finish(receive) == static_cast<int>(size));
    CHECK(same(from, 0, into, 0, size));
    CHECK(std::all_of(into.data() + size, into.data() + into.size(),
                      [](unsigned char byte) { return byte == 0xee; }));
  }
}

TEST_CASE("transfer: a message larger than the device's largest write goes in chunks",
          "[component][transfer]") {
  TransferRig rig({.largest_write = 1024});
  Storage from = rig.storage(100'000);
  paint(from, 9);
  for (const std::size_t size : {1024UL, 1025UL, 2048UL, 99'999UL}) {
    Storage into = rig.storage(100'000, 0xaa);
    Request* const receive = rig.receive(into, 100'000, 0);
    Request* const send = rig.send(from, size, 0);
    CHECK(rig.finish(receive) == static_cast<int>(size));
    CHECK(rig.finish(send) == static_cast<int>(size));
    CHECK(same(from, 0, into, 0, size));
  }
}

TEST_CASE("transfer: tags choose the place within a receive, equal tags in order",
          "[component][transfer]") {
  TransferRig rig;
  Storage from = rig.storage(400);
  Storage into = rig.storage(400);
  paint(from, 1);
  const std::array<int, 4> tags = {7, 9, 7, 8};
  std::array<ReceiveBuffer, 4> buffers;
  for (std::size_t i = 0; i < 4; ++i) {
    buffers[i] = {
        .data = into.data() + i * 100, .capacity = 100, .tag = tags[i], .memory = &into.handle()};
  }
  const auto receive = irecv(rig.receiver(), buffers);
  REQUIRE(receive);
  REQUIRE(*receive != nullptr);
  // The second buffer with tag 7 is used only after the first.
  const std::array<std::pair<int, int>, 4> order = {{{8, 3}, {7, 0}, {7, 2}, {9, 1}}};
  std::vector<Request*> sends;
  sends.reserve(order.size());
  for (const auto& [tag, place] : order) {
    sends.push_back(rig.send(from, 10U + static_cast<unsigned>(place), tag,
                             static_cast<std::size_t>(place) * 100));
  }
  // A tag for which no buffer is left waits for the next receive.
  const auto early = isend(rig.sender(), from, 1, 7);
  REQUIRE(early);
  CHECK(*early == nullptr);
  CHECK(rig.finish_all(*receive, 4) == std::vector<int>{10, 11, 12, 13});
  for (std::size_t i = 0; i < 4; ++i) CHECK(same(from, i * 100, into, i * 100, 10 + i));
  for (Request* const request : sends) rig.finish(request);
}

TEST_CASE("transfer: requests run out with a null, and come back", "[component][transfer]") {
  TransferRig rig;
  Storage from = rig.storage(64);
  Storage into = rig.storage(64);
  std::vector<Request*> receives;
  for (std::size_t i = 0; i < wire::kMaxGroups; ++i) receives.push_back(rig.receive(into, 1, 0));
  const ReceiveBuffer one_more = {
      .data = into.data(), .capacity = 1, .tag = 0, .memory = &into.handle()};
  auto refused = irecv(rig.receiver(), {&one_more, 1});
  REQUIRE(refused);
  CHECK(*refused == nullptr);
  for (Request* const receive : receives) {
    rig.finish(rig.send(from, 1, 0));
    CHECK(rig.finish(receive) == 1);
  }
  auto taken = irecv(rig.receiver(), {&one_more, 1});
  REQUIRE(taken);
  CHECK(*taken != nullptr);
}

TEST_CASE("transfer: closing tells the peer how many messages are settled",
          "[component][transfer]") {
  TransferRig rig;
  Storage from = rig.storage(64);
  Storage into = rig.storage(64);
  for (int i = 0; i < 3; ++i) {
    Request* const receive = rig.receive(into, 64, 0);
    rig.finish(rig.send(from, 64, 0));
    rig.finish(receive);
  }
  (void)rig.receive(into, 64, 0);  // granted, never sent
  rig.close_receiver();
  CHECK(rig.receiver_link().said == 3U);
  rig.close_sender();
  CHECK(rig.sender_link().said == 3U);
}

TEST_CASE("transfer: a goodbye ends the sends whose acknowledgement will not come",
          "[component][transfer]") {
  TransferRig rig;
  LogCapture log;
  Storage from = rig.storage(64);
  Storage into = rig.storage(64);
  (void)rig.receive(into, 64, 0);
  rig.fabric().command("h0/softnic0", "down");  // the credit is there; nothing else moves
  Request* const send = rig.send(from, 64, 0);
  const auto under_way = test_once(*send, nullptr);
  REQUIRE(under_way);
  CHECK_FALSE(*under_way);
  SECTION("as done, if the peer has finished them") {
    rig.sender_link().peer_says_goodbye(1);
    CHECK(rig.finish(send) == 64);
    const auto more = isend(rig.sender(), from, 1, 0);
    REQUIRE(!more);
    CHECK(more.error().code == Errc::kPeerClosed);
  }
  SECTION("as failed, if it has not") {
    rig.sender_link().peer_says_goodbye(0);
    const auto lost = test_once(*send, nullptr);
    REQUIRE(!lost);
    CHECK(lost.error().code == Errc::kPeerClosed);
    CHECK(log.count("closed the connection before all had arrived") == 1);
  }
}

TEST_CASE("transfer: a sender's goodbye fails the receives that nothing will reach",
          "[component][transfer]") {
  TransferRig rig;
  LogCapture log;
  Storage from = rig.storage(64);
  Storage into = rig.storage(64);
  Request* const first = rig.receive(into, 64, 0);
  Request* const second = rig.receive(into, 64, 0);
  rig.finish(rig.send(from, 64, 0));
  rig.receiver_link().peer_says_goodbye(1);
  CHECK(rig.finish(first) == 64);  // it had arrived
  const auto never = test_once(*second, nullptr);
  REQUIRE(!never);
  CHECK(never.error().code == Errc::kPeerClosed);
}

TEST_CASE("transfer: a dead peer fails every later call, and the log names both ends",
          "[component][transfer]") {
  TransferRig rig;
  LogCapture log;
  Storage from = rig.storage(64);
  Storage into = rig.storage(64);
  Request* const done = rig.receive(into, 64, 0);
  Request* const waiting = rig.receive(into, 64, 0);
  rig.finish(rig.send(from, 64, 0));
  rig.receiver_link().peer_dies("its process ended without goodbye");
  CHECK(rig.finish(done) == 64);
  must_keep_failing(*waiting, Errc::kPeerClosed);
  rig.sender_link().peer_dies("its process ended without goodbye");
  must_not_send(rig, from, Errc::kPeerClosed);
  CHECK(log.count("softnic0 port 1") == 2);
  CHECK(log.count("faraway (pid 4711)") == 2);
  CHECK(log.count("ended without goodbye") == 2);
}

TEST_CASE("transfer: a device that is gone is a failure of this end", "[component][transfer]") {
  TransferRig rig;
  LogCapture log;
  Storage from = rig.storage(64);
  Storage into = rig.storage(64);
  Request* const waiting = rig.receive(into, 64, 0);
  rig.receiver_link().device_goes("the device was removed");
  must_keep_failing(*waiting, Errc::kSystem);
  rig.sender_link().device_goes("the device was removed");
  must_not_send(rig, from, Errc::kSystem);
  CHECK(log.count("cannot move data: the device was removed") == 2);
}

TEST_CASE("transfer: a credit line that is partly stale is not used", "[unit][transfer]") {
  wire::CreditLine old_line = {.address = 0x1000,
                               .capacity = 8,
                               .tag = 3,
                               .rkeys = {0x1100, 0x1100},
                               .index = 0,
                               .count = 1,
                               .notices = 1,
                               .epoch = 0,
                               .number = 1,
                               .sum = 0};
  wire::seal(old_line, wire::Rails::kFew);
  wire::CreditLine new_line = old_line;
  new_line.address = 0x2000;
  // The keys of two rails come from parallel counters: both halves of a word change alike.
  new_line.rkeys = {0x1200, 0x1200};
  new_line.number = 1 + wire::kMaxLines;
  wire::seal(new_line, wire::Rails::kFew);
  wire::LineFacts out = {};
  REQUIRE(wire::read_line(old_line, 0, wire::Rails::kFew, out));
  REQUIRE(wire::read_line(new_line, wire::kMaxLines, wire::Rails::kFew, out));
  CHECK(out.address == 0x2000);
  // Every mixture of old and new words except the complete new line.
  for (unsigned mixture = 0; mixture < 255; ++mixture) {
    wire::CreditLine mixed = old_line;
    for (std::size_t word = 0; word < 8; ++word) {
      if ((mixture >> word & 1) == 0) continue;
      std::memcpy(reinterpret_cast<char*>(&mixed) + word * 8,
                  reinterpret_cast<const char*>(&new_line) + word * 8, 8);
    }
    const bool all_that_changed = std::memcmp(&mixed, &new_line, sizeof mixed) == 0;
    CHECK(wire::read_line(mixed, wire::kMaxLines, wire::Rails::kFew, out) == all_that_changed);
  }
}

TEST_CASE("transfer: the control thread takes an idle comm, and calls are put off meanwhile",
          "[component][transfer]") {
  TransferRig rig;
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  const ReceiveBuffer buffer = {
      .data = into.data(), .capacity = 64, .tag = 0, .memory = &into.handle()};
  REQUIRE(rig.receiver().take_if_idle());
  CHECK_FALSE(rig.receiver().take_if_idle());
  const auto put_off = irecv(rig.receiver(), {&buffer, 1});
  REQUIRE(put_off);
  CHECK(*put_off == nullptr);
  rig.receiver().give_back();

  Request* const receive = rig.receive(into, 64, 0);
  CHECK_FALSE(rig.receiver().take_if_idle());  // a receive is outstanding
  REQUIRE(rig.sender().take_if_idle());
  const auto unsent = isend(rig.sender(), from, 64, 0);
  REQUIRE(unsent);
  CHECK(*unsent == nullptr);
  rig.sender().give_back();
  Request* const send = rig.send(from, 64, 0);
  CHECK_FALSE(rig.sender().take_if_idle());
  CHECK(rig.finish(send) == 64);
  CHECK(rig.finish(receive) == 64);
  REQUIRE(rig.sender().take_if_idle());
  rig.sender().give_back();
  REQUIRE(rig.receiver().take_if_idle());
  rig.receiver().give_back();
}

TEST_CASE("transfer: a flush uses the configured partition", "[component][transfer]") {
  const PkeyChoice pkey =
      GENERATE(PkeyChoice{}, PkeyChoice{.index = 0}, PkeyChoice{.index = 1},
               PkeyChoice{.index = 1, .value = 0x7fff}, PkeyChoice{.value = 0x8001});
  CAPTURE(pkey.index, pkey.value);
  const bool is_there = pkey.value == 0x7fff || (pkey.value < 0 && pkey.index < 1);
  TransferRig rig({.pkey = pkey});
  const LogCapture log;
  const auto prepared = rig.receiver().prepare_flush({.any = true}, 1);
  REQUIRE(prepared.has_value() == is_there);  // softnic's ports have one partition, 0xffff
  if (!prepared) CHECK(log.count("partition") == 1);
}

}  // namespace beeline::test
