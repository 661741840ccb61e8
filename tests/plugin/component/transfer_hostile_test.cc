// SPDX-License-Identifier: Apache-2.0
//
// A peer that breaks the protocol of the data path. Whatever it writes into the ring or sends to
// the receive queue ends its comm with one log line, and never reaches memory that was not granted.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "tests/plugin/component/transfer_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

namespace beeline::test {
namespace {

constexpr std::size_t kRoom = 256;

// A comm that has transferred one message.
struct AttackedComm {
  explicit AttackedComm(std::size_t paths = 1) : rig({.paths = paths}) {
    Storage warm = rig.storage(kRoom, 1);
    Request* const receive = rig.receive(into, kRoom, 0);
    rig.finish(rig.send(warm, 8, 0));
    rig.finish(receive);
    std::fill_n(into.data(), kRoom, 0xee);
    log.clear();
  }

  bool is_untouched() {
    return std::all_of(into.data(), into.data() + kRoom,
                       [](unsigned char byte) { return byte == 0xee; });
  }

  LogCapture log;
  TransferRig rig;
  Storage into = rig.storage(kRoom, 0xee);
};

// --- A hostile sender ---

void post(TransferRig& rig, ibv_send_wr& work) {
  ibv_send_wr* refused = nullptr;
  BL_MUST_OK(ibv_post_send(rig.sender().paths()[0].resources->queues.qp.get(), &work, &refused));
}

void send_immediate(TransferRig& rig, std::uint32_t bits) {
  ibv_send_wr work = {};
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.imm_data = htonl(bits);
  post(rig, work);
}

void send_bytes(TransferRig& rig, const void* bytes, std::size_t size) {
  ibv_sge sge = {.addr = reinterpret_cast<std::uint64_t>(bytes),
                 .length = static_cast<std::uint32_t>(size),
                 .lkey = 0};
  ibv_send_wr work = {};
  work.sg_list = &sge;
  work.num_sge = 1;
  work.opcode = IBV_WR_SEND;
  work.send_flags = IBV_SEND_INLINE;
  post(rig, work);
}

// A valid notice for the one receive in flight: position 1, 256 bytes.
wire::Notice good_notice() {
  return {.line = 1, .generation = 0, .chunks = 1, .size = 10, .which = 1};
}

Errc wait_for_failure(Request& request) {
  const auto deadline = Clock::now() + kPatience;
  while (Clock::now() < deadline) {
    int size = 0;
    const Result<bool> done = test_once(request, &size);
    if (!done) return done.error().code;
    BL_MUST(!*done);
  }
  throw MustError("the comm never failed");
}

void must_break(AttackedComm& comm, Request& receive) {
  CHECK(wait_for_failure(receive) == Errc::kProtocol);
  CHECK(comm.log.count(LogLevel::kWarn) == 1);
  CHECK(comm.log.has("faraway:softnic9:1 sent"));
  CHECK(comm.is_untouched());
  // Later calls fail, too, without another log line.
  CHECK_FALSE(irecv(comm.rig.receiver(), {}));
  CHECK(comm.log.count(LogLevel::kWarn) == 1);
  CHECK_FALSE(comm.rig.receiver_link().failure.empty());
}

// --- A hostile receiver ---

wire::LineFacts good_line(const Storage& into, unsigned char* data) {
  return {.address = reinterpret_cast<std::uint64_t>(data),
          .capacity = kRoom,
          .tag = 0,
          .rkey = into.handle().rkeys[0],
          .number = 2,  // position 1
          .index = 0,
          .count = 1,
          .epoch = 0};
}

void put_line(TransferRig& rig, const wire::LineFacts& facts) {
  const std::array<std::uint32_t, wire::kMaxRails> rkeys = {facts.rkey};
  wire::write_line(
      rig.ring()[(facts.number - 1) % wire::kMaxLines],
      {.address = facts.address, .capacity = facts.capacity, .tag = facts.tag, .rkeys = &rkeys},
      wire::order_of(facts.number, facts.index, facts.count, 0), wire::Rails::kFew);
}

// Puts the first line of an irecv with two buffers, with another tag. Returns the second, which is
// not put yet.
wire::LineFacts put_first_of_two(AttackedComm& comm) {
  wire::LineFacts line = good_line(comm.into, comm.into.data());
  line.count = 2;
  line.tag = 5;
  put_line(comm.rig, line);
  ++line.number;
  line.index = 1;
  line.tag = 0;
  return line;
}

}  // namespace

TEST_CASE("hostile: an immediate that matches no receive breaks the comm",
          "[component][transfer]") {
  AttackedComm comm;
  Request* const receive = comm.rig.receive(comm.into, kRoom, 0);
  SECTION("a line that was never granted") { send_immediate(comm.rig, 2); }
  SECTION("the line before, which is done") { send_immediate(comm.rig, 0); }
  SECTION("the same place, a round later") { send_immediate(comm.rig, 1 + wire::kMaxLines); }
  SECTION("the highest line") { send_immediate(comm.rig, 0xffff); }
  must_break(comm, *receive);
}

TEST_CASE("hostile: an invalid notice breaks the comm", "[component][transfer]") {
  AttackedComm comm;
  Request* const receive = comm.rig.receive(comm.into, kRoom, 0);
  wire::Notice notice = good_notice();
  std::size_t size = sizeof notice;
  SECTION("a line that was never granted") { notice.line = 2; }
  SECTION("the line before, which is done") { notice.line = 0; }
  SECTION("a round later") { notice.line += wire::kMaxLines; }
  SECTION("beyond all positions") { notice.line = UINT16_MAX; }
  SECTION("more than there is room for") { notice.size = kRoom + 1; }
  SECTION("more than there can be") { notice.size = UINT32_MAX; }
  SECTION("a chunk that the message does not have") { notice.which = 2; }
  SECTION("fewer chunks than there are") { notice.chunks = 2; }
  SECTION("no chunk at all") { notice.which = 0; }
  SECTION("a path that was made anew") { notice.generation = 1; }
  SECTION("half a notice") { size = 8; }
  SECTION("nothing at all") { size = 0; }
  send_bytes(comm.rig, &notice, size);
  must_break(comm, *receive);
}

TEST_CASE("hostile: a chunk that is announced twice breaks the comm", "[component][transfer]") {
  AttackedComm comm(2);
  constexpr std::uint32_t kTwoChunks = 2 * wire::kLeastChunkBytes;
  Storage into = comm.rig.storage(kTwoChunks);
  Request* const receive = comm.rig.receive(into, kTwoChunks, 0);
  const wire::Notice first = {
      .line = 1, .generation = 0, .chunks = 2, .size = kTwoChunks, .which = 1};
  send_bytes(comm.rig, &first, sizeof first);
  send_bytes(comm.rig, &first, sizeof first);
  must_break(comm, *receive);
  CHECK(comm.log.has("a notice of data that has arrived before"));
}

TEST_CASE("hostile: a message that is announced twice counts once", "[component][transfer]") {
  AttackedComm comm;
  Request* const first = comm.rig.receive(comm.into, 64, 0);
  Request* const second = comm.rig.receive(comm.into, 64, 0, 64);
  const wire::Notice notice = good_notice();
  send_bytes(comm.rig, &notice, sizeof notice);
  CHECK(comm.rig.finish(first) == 10);
  SECTION("by a notice again") { send_bytes(comm.rig, &notice, sizeof notice); }
  SECTION("by an immediate") { send_immediate(comm.rig, notice.line); }
  must_break(comm, *second);
}

TEST_CASE("hostile: a credit line that belongs to no receive breaks the comm",
          "[component][transfer]") {
  AttackedComm comm;
  wire::LineFacts line = good_line(comm.into, comm.into.data());
  SECTION("not the first of its irecv") { line.index = 1; }
  SECTION("an index beyond all") { line.index = 255; }
  SECTION("of none") { line.count = 0; }
  SECTION("of more than there may be") { line.count = wire::kMaxReceives + 1; }
  SECTION("of as many as fit") { line.count = 255; }
  put_line(comm.rig, line);
  Storage from = comm.rig.storage(64, 7);
  Result<Request*> sent = isend(comm.rig.sender(), from, 64, 0);
  if (sent) sent = isend(comm.rig.sender(), from, 64, 0);  // checks what the first call has read
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == Errc::kProtocol);
  CHECK(comm.log.count(LogLevel::kWarn) == 1);
  CHECK(comm.log.has("a credit line that belongs to no receive"));
  CHECK(comm.is_untouched());
  CHECK_FALSE(comm.rig.sender_link().failure.empty());
}

TEST_CASE("hostile: lines of one irecv that disagree break the comm", "[component][transfer]") {
  AttackedComm comm;
  wire::LineFacts line = put_first_of_two(comm);
  SECTION("in their number") { line.count = 3; }
  SECTION("in their order") { line.index = 0; }
  put_line(comm.rig, line);
  Storage from = comm.rig.storage(64, 7);
  Result<Request*> sent = isend(comm.rig.sender(), from, 64, 0);
  if (sent) sent = isend(comm.rig.sender(), from, 64, 0);
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == Errc::kProtocol);
  CHECK(comm.log.count(LogLevel::kWarn) == 1);
}

TEST_CASE("hostile: a line with a wrong check sum is ignored", "[component][transfer]") {
  AttackedComm comm;
  put_line(comm.rig, good_line(comm.into, comm.into.data()));
  comm.rig.ring()[1].sum ^= 1;
  Storage from = comm.rig.storage(64, 7);
  const Result<Request*> sent = isend(comm.rig.sender(), from, 64, 0);
  REQUIRE(sent);
  CHECK(*sent == nullptr);
  CHECK(comm.log.count(LogLevel::kWarn) == 0);
}

TEST_CASE("hostile: a line whose check sum stays wrong breaks the comm", "[component][transfer]") {
  AttackedComm comm;
  const bool is_group = GENERATE(false, true);
  CAPTURE(is_group);
  const wire::LineFacts line =
      is_group ? put_first_of_two(comm) : good_line(comm.into, comm.into.data());
  put_line(comm.rig, line);
  comm.rig.ring()[line.number - 1].sum ^= 1;
  Storage from = comm.rig.storage(64, 7);
  const auto deadline = Clock::now() + kPatience;
  Result<Request*> sent = isend(comm.rig.sender(), from, 64, 0);
  while (sent && Clock::now() < deadline) {
    REQUIRE(*sent == nullptr);
    sent = isend(comm.rig.sender(), from, 64, 0);
  }
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == Errc::kProtocol);
  CHECK(comm.log.count(LogLevel::kWarn) == 1);
  CHECK(comm.log.has("a credit line whose check sum is wrong"));
}

TEST_CASE("hostile: a line that arrives in pieces is used when it is complete",
          "[component][transfer]") {
  AttackedComm comm;
  put_line(comm.rig, good_line(comm.into, comm.into.data()));
  comm.rig.ring()[1].sum ^= 1;
  Storage from = comm.rig.storage(64, 7);
  Result<Request*> sent = isend(comm.rig.sender(), from, 64, 0);
  REQUIRE((sent && *sent == nullptr));
  comm.rig.ring()[1].sum ^= 1;
  sent = isend(comm.rig.sender(), from, 64, 0);
  REQUIRE((sent && *sent != nullptr));
  CHECK(comm.log.count(LogLevel::kWarn) == 0);
}

TEST_CASE("hostile: a line gives no access beyond what its device grants",
          "[component][transfer]") {
  AttackedComm comm;
  wire::LineFacts line = good_line(comm.into, comm.into.data());
  SECTION("a key of nothing") { line.rkey ^= 0x5a5a00; }
  // Registrations cover whole pages.
  SECTION("memory beyond what is registered") { line.address += std::size_t{1} << 20; }
  SECTION("address zero") { line.address = 0; }
  SECTION("a capacity beyond all memory") {
    line.capacity = UINT32_MAX;
    line.address = UINT64_MAX - 10;
  }
  put_line(comm.rig, line);
  Storage from = comm.rig.storage(64, 7);
  const Result<Request*> sent = isend(comm.rig.sender(), from, 64, 0);
  REQUIRE((sent && *sent != nullptr));
  CHECK(wait_for_failure(**sent) != Errc::kOk);
  CHECK(comm.log.count(LogLevel::kWarn) == 1);
  CHECK(comm.is_untouched());
}

TEST_CASE("hostile: after any announcement the receiver completes or fails cleanly",
          "[component][transfer]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    AttackedComm comm;
    Request* const receive = comm.rig.receive(comm.into, kRoom, 0);
    for (int i = 0; i < 8; ++i) {
      wire::Notice notice = good_notice();
      const std::size_t at = random() % sizeof notice;
      reinterpret_cast<unsigned char*>(&notice)[at] = static_cast<unsigned char>(random());
      if (random() % 3 == 0) {
        send_immediate(comm.rig, static_cast<std::uint32_t>(random()));
      } else {
        send_bytes(comm.rig, &notice, random() % (sizeof notice + 1));
      }
    }
    const auto deadline = Clock::now() + kPatience;
    int size = 0;
    Result<bool> done = false;
    while (done && !*done && Clock::now() < deadline) done = test_once(*receive, &size);
    CHECK((!done || (*done && size >= 0 && size <= static_cast<int>(kRoom))));
    CHECK(comm.log.count(LogLevel::kWarn) <= 1);
    CHECK(comm.is_untouched());
  }
}

}  // namespace beeline::test
