// SPDX-License-Identifier: Apache-2.0
//
// The five operations move exactly the bytes they were told to, at every size, and their
// completions say exactly what happened.
#include <cstring>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr uint32_t kImm = 0xA1B2C3D4;

size_t any_size() {
  return GENERATE(size_t{0}, size_t{1}, size_t{7}, size_t{4096}, (size_t{64} << 10) + 1,
                  (size_t{1} << 20) + 3, size_t{32} << 20);
}

// What ibv_poll_cq's manual page calls valid for a success; `received` adds what only receives
// have.
void check_success(const ibv_wc& wc, uint64_t wr_id, ibv_wc_opcode opcode, ibv_qp* qp) {
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.wr_id == wr_id);
  CHECK(wc.opcode == opcode);
  CHECK(wc.qp_num == qp->qp_num);
  CHECK(wc.vendor_err == 0);
}

void check_received(const ibv_wc& wc, uint64_t wr_id, ibv_wc_opcode opcode, ibv_qp* qp,
                    size_t length, bool with_imm) {
  check_success(wc, wr_id, opcode, qp);
  CHECK(wc.byte_len == length);
  CHECK(wc.wc_flags == (with_imm ? unsigned{IBV_WC_WITH_IMM} : 0u));
  if (with_imm) CHECK(wc.imm_data == kImm);
}

}  // namespace

TEST_CASE("data: WRITE places its bytes and tells only its sender", "[softnic][data]") {
  const size_t size = any_size();
  Pair pair;
  Buffer from = pair.a.buffer(size + 1);
  Buffer into = pair.b.buffer(size + 1);
  from.fill(1);
  REQUIRE(post(pair.b.qp, RecvWork{.wr_id = 5}) == 0);
  REQUIRE(post(pair.a.qp, write_work(from.part(0, size), into.part(0, size), 6)) == 0);
  check_success(poll_one(pair.a.send_cq.get()), 6, IBV_WC_RDMA_WRITE, pair.a.qp);
  CHECK(has_pattern(into.bytes(0, size), 1));
  CHECK(into.data()[size] == 0);
  CHECK(into.guards_intact());
  CHECK(from.has(1));
  // The receive is still there: a message with an immediate takes it.
  REQUIRE(post(pair.a.qp, write_imm_work(from.part(0, 0), into.part(0, 0), kImm, 7)) == 0);
  must_complete(pair.a.send_cq.get(), 7);
  check_received(poll_one(pair.b.recv_cq.get()), 5, IBV_WC_RECV_RDMA_WITH_IMM, pair.b.qp, 0, true);
  CHECK(is_empty(pair.b.recv_cq.get()));
}

TEST_CASE("data: WRITE with immediate places its bytes and takes a receive", "[softnic][data]") {
  const size_t size = any_size();
  Pair pair;
  Buffer from = pair.a.buffer(size + 1);
  Buffer into = pair.b.buffer(size + 1);
  Buffer unused = pair.b.buffer(16);
  from.fill(2);
  REQUIRE(post(pair.b.qp, recv_work(unused.all(), 5)) == 0);
  REQUIRE(post(pair.a.qp, write_imm_work(from.part(0, size), into.part(0, size), kImm, 6)) == 0);
  check_received(poll_one(pair.b.recv_cq.get()), 5, IBV_WC_RECV_RDMA_WITH_IMM, pair.b.qp, size,
                 true);
  CHECK(has_pattern(into.bytes(0, size), 2));
  CHECK(into.data()[size] == 0);
  CHECK(unused.is_zero(0, 16));  // the receive's own memory is not for the data of a WRITE
  check_success(poll_one(pair.a.send_cq.get()), 6, IBV_WC_RDMA_WRITE, pair.a.qp);
}

TEST_CASE("data: SEND fills the receive from its start", "[softnic][data]") {
  const size_t size = any_size();
  const bool with_imm = GENERATE(false, true);
  Pair pair;
  Buffer from = pair.a.buffer(size + 1);
  Buffer into = pair.b.buffer(size + 100);
  from.fill(3);
  REQUIRE(post(pair.b.qp, recv_work(into.all(), 5)) == 0);
  const Region message = from.part(0, size);
  REQUIRE(post(pair.a.qp, with_imm ? send_imm_work(message, kImm, 6) : send_work(message, 6)) == 0);
  check_received(poll_one(pair.b.recv_cq.get()), 5, IBV_WC_RECV, pair.b.qp, size, with_imm);
  CHECK(has_pattern(into.bytes(0, size), 3));
  CHECK(into.is_zero(size, 100));
  CHECK(into.guards_intact());
  check_success(poll_one(pair.a.send_cq.get()), 6, IBV_WC_SEND, pair.a.qp);
}

TEST_CASE("data: READ fetches bytes and leaves them where they are", "[softnic][data]") {
  const size_t size = any_size();
  Pair pair;
  Buffer into = pair.a.buffer(size + 1);
  Buffer from = pair.b.buffer(size + 1);
  from.fill(4);
  REQUIRE(post(pair.a.qp, read_work(into.part(0, size), from.part(0, size), 6)) == 0);
  const ibv_wc wc = poll_one(pair.a.send_cq.get());
  check_success(wc, 6, IBV_WC_RDMA_READ, pair.a.qp);
  CHECK(wc.byte_len == size);
  CHECK(has_pattern(into.bytes(0, size), 4));
  CHECK(into.data()[size] == 0);
  CHECK(into.guards_intact());
  CHECK(from.has(4));
}

TEST_CASE("data: every operation works without any piece", "[softnic][data]") {
  Pair pair;
  REQUIRE(post_list(pair.b.qp, std::vector<RecvWork>{{.wr_id = 1}, {.wr_id = 2}, {.wr_id = 3}}) ==
          0);
  const ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
                                   IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ};
  for (const ibv_wr_opcode opcode : opcodes) {
    REQUIRE(post(pair.a.qp, SendWork{.opcode = opcode, .wr_id = 10u + opcode, .imm = kImm}) == 0);
    must_complete(pair.a.send_cq.get(), 10u + opcode);
  }
  const auto received = poll_many(pair.b.recv_cq.get(), 3);
  check_received(received[0], 1, IBV_WC_RECV_RDMA_WITH_IMM, pair.b.qp, 0, true);
  check_received(received[1], 2, IBV_WC_RECV, pair.b.qp, 0, false);
  check_received(received[2], 3, IBV_WC_RECV, pair.b.qp, 0, true);
}

TEST_CASE("data: a WRITE or READ of nothing is not checked against any key", "[softnic][data]") {
  const auto opcode = GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ);
  Pair pair;
  SendWork work{.opcode = opcode, .wr_id = 1};
  work.remote_addr = 0xDEAD0000;
  work.rkey = 0xBEEF;
  REQUIRE(post(pair.a.qp, work) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(state_of(pair.b.qp) == IBV_QPS_RTS);
}

TEST_CASE("data: a gather list is one message", "[softnic][data]") {
  Pair pair;
  Buffer from = pair.a.buffer(10000);
  Buffer into = pair.b.buffer(10000);
  from.fill(5);
  // Pieces out of order. One is empty, so its key does not matter.
  const std::vector<ibv_sge> pieces = {from.part(5000, 4097).sge(), from.part(0, 1).sge(),
                                       ibv_sge{77, 0, 0xBAD}, from.part(200, 300).sge()};
  const auto check_arrival = [&] {
    CHECK(has_pattern(into.bytes(0, 4097), 5, 5000));
    CHECK(has_pattern(into.bytes(4097, 1), 5, 0));
    CHECK(has_pattern(into.bytes(4098, 300), 5, 200));
    CHECK(into.is_zero(4398, 10000 - 4398));
  };
  SECTION("WRITE") {
    SendWork work = write_work(from.all(), into.all(), 1);
    work.local = pieces;
    REQUIRE(post(pair.a.qp, work) == 0);
    must_complete(pair.a.send_cq.get(), 1);
    check_arrival();
  }
  SECTION("SEND") {
    SendWork work = send_work(from.all(), 1);
    work.local = pieces;
    REQUIRE(post(pair.b.qp, recv_work(into.all(), 2)) == 0);
    REQUIRE(post(pair.a.qp, work) == 0);
    const ibv_wc wc = poll_one(pair.b.recv_cq.get());
    CHECK(wc.byte_len == 4398);
    must_complete(pair.a.send_cq.get(), 1);
    check_arrival();
  }
}

TEST_CASE("data: a scatter list is filled piece after piece", "[softnic][data]") {
  const size_t size = GENERATE(size_t{1}, size_t{99}, size_t{100}, size_t{101}, size_t{5000},
                               size_t{100 + 4097 + 1000});
  const bool reading = GENERATE(false, true);
  Pair pair;
  Buffer from = reading ? pair.b.buffer(10000) : pair.a.buffer(10000);
  Buffer into = reading ? pair.a.buffer(10000) : pair.b.buffer(10000);
  from.fill(6);
  const size_t offsets[] = {9000, 3000, 0};
  const size_t lengths[] = {100, 4097, 1000};
  std::vector<ibv_sge> pieces;
  size_t left = reading ? size : 100 + 4097 + 1000;  // a READ's pieces are its length
  for (size_t i = 0; i < 3; ++i) {
    const size_t take = std::min(lengths[i], left);
    if (take > 0) pieces.push_back(into.part(offsets[i], take).sge());
    left -= take;
  }
  if (reading) {
    SendWork work = read_work(into.all(), from.all(), 1);
    work.local = pieces;
    REQUIRE(post(pair.a.qp, work) == 0);
    must_complete(pair.a.send_cq.get(), 1);
  } else {
    pieces.insert(pieces.begin() + 1, ibv_sge{77, 0, 0xBAD});  // empty: nobody looks at its key
    REQUIRE(post(pair.b.qp, RecvWork{.wr_id = 2, .local = pieces}) == 0);
    REQUIRE(post(pair.a.qp, send_work(from.part(0, size), 1)) == 0);
    must_complete(pair.b.recv_cq.get(), 2);
  }
  size_t done = 0;
  for (size_t i = 0; i < 3; ++i) {
    const size_t part = std::min(lengths[i], size - done);
    CHECK(has_pattern(into.bytes(offsets[i], part), 6, done));
    CHECK(into.is_zero(offsets[i] + part, lengths[i] - part));
    done += part;
  }
  CHECK(into.is_zero(1000, 2000));
  CHECK(into.is_zero(3000 + 4097, 9000 - 3000 - 4097));
}

TEST_CASE("data: inline bytes belong to the caller as soon as the post returns",
          "[softnic][data]") {
  const auto opcode =
      GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM);
  Pair pair;
  const uint32_t limit = pair.a.cap.max_inline_data;
  REQUIRE(limit >= 64);
  const uint32_t size = GENERATE_COPY(values<uint32_t>({0, 1, 33, limit}));
  Buffer into = pair.b.buffer(limit + 16);
  REQUIRE(post(pair.b.qp, recv_work(into.all(), 5)) == 0);
  std::vector<uint8_t> bytes(size + 1);  // not registered at all
  fill_pattern(bytes, 7);
  SendWork work{.opcode = opcode, .wr_id = 6};
  // Two pieces, and a key that would not do: inline data is not looked up.
  const auto addr = reinterpret_cast<uint64_t>(bytes.data());
  work.local = {{addr, size / 3, 0xBAD}, {addr + size / 3, size - size / 3, 0xBAD}};
  work.remote_addr = into.all().addr;
  work.rkey = into.all().rkey;
  work.flags |= IBV_SEND_INLINE;
  REQUIRE(post(pair.a.qp, work) == 0);
  std::memset(bytes.data(), 0, bytes.size());
  must_complete(pair.a.send_cq.get(), 6);
  if (opcode != IBV_WR_RDMA_WRITE) must_complete(pair.b.recv_cq.get(), 5);
  CHECK(has_pattern(into.bytes(0, size), 7));
  CHECK(into.is_zero(size, 16));
}

TEST_CASE("data: inline bytes are kept while the request has to wait", "[softnic][data]") {
  Pair pair;
  Buffer into = pair.b.buffer(64);
  std::vector<uint8_t> bytes(60);
  fill_pattern(bytes, 8);
  SendWork work{.opcode = IBV_WR_SEND, .wr_id = 1};
  work.local = {{reinterpret_cast<uint64_t>(bytes.data()), 60, 0xBAD}};
  work.flags |= IBV_SEND_INLINE;
  REQUIRE(post(pair.a.qp, work) == 0);  // nobody is ready to receive
  bytes.assign(60, 0);
  REQUIRE(post(pair.b.qp, recv_work(into.all(), 2)) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  must_complete(pair.b.recv_cq.get(), 2);
  CHECK(has_pattern(into.bytes(0, 60), 8));
}

TEST_CASE("data: inline that is too long, or a READ, is EINVAL", "[softnic][data]") {
  Pair pair;
  Buffer from = pair.a.buffer(pair.a.cap.max_inline_data + 1);
  Buffer into = pair.b.buffer(pair.a.cap.max_inline_data + 1);
  SendWork too_long = write_work(from.all(), into.all());
  too_long.flags |= IBV_SEND_INLINE;
  CHECK(post(pair.a.qp, too_long) == EINVAL);
  SendWork read = read_work(from.part(0, 8), into.part(0, 8));
  read.flags |= IBV_SEND_INLINE;
  CHECK(post(pair.a.qp, read) == EINVAL);
}

TEST_CASE("data: a posted WRITE goes out though nobody polls", "[softnic][data]") {
  Pair pair;
  Buffer from = pair.a.buffer(1 << 20);
  Buffer into = pair.b.buffer(1 << 20);
  from.data()[(1 << 20) - 1] = 1;
  REQUIRE(post(pair.a.qp, unsignaled(write_work(from.all(), into.all()))) == 0);
  wait_until([&] { return into.peek((1 << 20) - 1) == 1; }, "the last byte");
}

TEST_CASE("data: as many pieces as the device promises, on both sides", "[softnic][data]") {
  const TestFabric fabric;
  ibv_device_attr attr{};
  REQUIRE(ibv_query_device(open_device("softnic0").get(), &attr) == 0);
  const auto count = static_cast<size_t>(attr.max_sge);
  const QpShape shape{.max_sge = static_cast<uint32_t>(count)};
  Endpoint a("softnic0", shape);
  Endpoint b("softnic1", shape);
  connect_both(a.qp, b.qp);
  Buffer from = a.buffer(3 * count);
  Buffer into = b.buffer(3 * count);
  from.fill(1);
  SendWork send{.opcode = IBV_WR_SEND, .wr_id = 1};
  RecvWork recv{.wr_id = 2};
  // The same bytes, cut at other places and from the back to the front.
  for (size_t i = 0; i < count; ++i) {
    send.local.push_back(from.part(3 * i, 3).sge());
    recv.local.push_back(into.part(3 * (count - 1 - i), 3).sge());
  }
  REQUIRE(post(b.qp, recv) == 0);
  REQUIRE(post(a.qp, send) == 0);
  must_complete(a.send_cq.get(), 1);
  must_complete(b.recv_cq.get(), 2);
  for (size_t i = 0; i < count; ++i) {
    CHECK(has_pattern(into.bytes(3 * (count - 1 - i), 3), 1, 3 * i));
  }
}
