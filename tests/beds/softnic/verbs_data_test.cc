// SPDX-License-Identifier: Apache-2.0
//
// All operations at many sizes: they move exactly the requested bytes, and their completions have
// the right fields.
#include <algorithm>
#include <cstring>
#include <optional>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::uint32_t kImm = 0xA1B2C3D4;

std::size_t any_size() {
  return GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{4096},
                  (std::size_t{64} << 10) + 1, (std::size_t{1} << 20) + 3, std::size_t{32} << 20);
}

// What ibv_poll_cq's manual page calls valid for a success; `received` adds what only receives
// have.
void check_success(const ibv_wc& wc, std::uint64_t wr_id, ibv_wc_opcode opcode, ibv_qp* qp) {
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.wr_id == wr_id);
  CHECK(wc.opcode == opcode);
  CHECK(wc.qp_num == qp->qp_num);
  CHECK(wc.vendor_err == 0);
}

void check_received(const ibv_wc& wc, std::uint64_t wr_id, ibv_wc_opcode opcode, ibv_qp* qp,
                    std::size_t length, bool with_imm) {
  check_success(wc, wr_id, opcode, qp);
  CHECK(wc.byte_len == length);
  CHECK(wc.wc_flags == (with_imm ? unsigned{IBV_WC_WITH_IMM} : 0u));
  if (with_imm) CHECK(wc.imm_data == kImm);
}

}  // namespace

TEST_CASE("data: each operation moves its bytes and no others", "[softnic][data]") {
  struct Operation {
    ibv_wr_opcode opcode;
    ibv_wc_opcode sent;
    std::optional<ibv_wc_opcode> received;
    bool with_imm;
  };
  const Operation operation = GENERATE(values<Operation>({
      {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, std::nullopt, false},
      {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, true},
      {IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, false},
      {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true},
      {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, std::nullopt, false},
  }));
  const std::size_t size = any_size();
  INFO("opcode " << operation.opcode << ", " << size << " bytes");
  const bool reads = operation.opcode == IBV_WR_RDMA_READ;
  const bool fills_receive = operation.received == IBV_WC_RECV;
  Pair pair;
  Buffer here = pair.a.buffer(size + 1);
  Buffer there = pair.b.buffer(size + 1);
  Buffer unused = pair.b.buffer(16);  // memory of the receive that a WRITE leaves alone
  Buffer& from = reads ? there : here;
  Buffer& into = reads ? here : there;
  from.fill(1);
  REQUIRE(post(pair.b.qp, recv_work(fills_receive ? there.all() : unused.all(), 5)) == 0);
  SendWork work = write_imm_work(here.part(0, size), there.part(0, size), kImm, 6);
  work.opcode = operation.opcode;
  REQUIRE(post(pair.a.qp, work) == 0);
  const ibv_wc sent = poll_one(pair.a.send_cq.get());
  check_success(sent, 6, operation.sent, pair.a.qp);
  if (reads) CHECK(sent.byte_len == size);
  if (operation.received) {
    check_received(poll_one(pair.b.recv_cq.get()), 5, *operation.received, pair.b.qp, size,
                   operation.with_imm);
  }
  CHECK(is_empty(pair.b.recv_cq.get()));
  CHECK(has_pattern(into.bytes(0, size), 1));
  CHECK(into.data()[size] == 0);
  CHECK(into.guards_intact());
  CHECK(from.has(1));
  CHECK(unused.is_zero(0, 16));
}

TEST_CASE("data: a scatter list is filled in order", "[softnic][data]") {
  const std::size_t size =
      GENERATE(std::size_t{1}, std::size_t{99}, std::size_t{100}, std::size_t{101},
               std::size_t{5000}, std::size_t{100 + 4097 + 1000});
  const bool reading = GENERATE(false, true);
  Pair pair;
  Buffer from = reading ? pair.b.buffer(10000) : pair.a.buffer(10000);
  Buffer into = reading ? pair.a.buffer(10000) : pair.b.buffer(10000);
  from.fill(6);
  const std::size_t offsets[] = {9000, 3000, 0};
  const std::size_t lengths[] = {100, 4097, 1000};
  std::vector<ibv_sge> pieces;
  std::size_t left = reading ? size : 100 + 4097 + 1000;  // a READ's pieces are its length
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t take = std::min(lengths[i], left);
    if (take > 0) pieces.push_back(into.part(offsets[i], take).sge());
    left -= take;
  }
  if (reading) {
    SendWork work = read_work(into.all(), from.all(), 1);
    work.local = pieces;
    REQUIRE(post(pair.a.qp, work) == 0);
    must_complete(pair.a.send_cq.get(), 1);
  } else {
    pieces.insert(pieces.begin() + 1, ibv_sge{77, 0, 0xBAD});  // empty, so its key is not checked
    REQUIRE(post(pair.b.qp, RecvWork{.wr_id = 2, .local = pieces}) == 0);
    REQUIRE(post(pair.a.qp, send_work(from.part(0, size), 1)) == 0);
    must_complete(pair.b.recv_cq.get(), 2);
  }
  std::size_t done = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t part = std::min(lengths[i], size - done);
    CHECK(has_pattern(into.bytes(offsets[i], part), 6, done));
    CHECK(into.is_zero(offsets[i] + part, lengths[i] - part));
    done += part;
  }
  CHECK(into.is_zero(1000, 2000));
  CHECK(into.is_zero(3000 + 4097, 9000 - 3000 - 4097));
}

TEST_CASE("data: inline data can be changed as soon as the post returns", "[softnic][data]") {
  const auto opcode =
      GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM);
  Pair pair;
  const std::uint32_t limit = pair.a.cap.max_inline_data;
  REQUIRE(limit >= 64);
  const std::uint32_t size = GENERATE_COPY(values<std::uint32_t>({0, 1, 33, limit}));
  Buffer into = pair.b.buffer(limit + 16);
  REQUIRE(post(pair.b.qp, recv_work(into.all(), 5)) == 0);
  std::vector<std::uint8_t> bytes(size + 1);  // not registered at all
  fill_pattern(bytes, 7);
  SendWork work{.opcode = opcode, .wr_id = 6};
  // Two SGEs with an invalid key, which is not checked for inline data.
  const auto addr = reinterpret_cast<std::uint64_t>(bytes.data());
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

TEST_CASE("data: a posted WRITE is sent without any polling", "[softnic][data]") {
  Pair pair;
  Buffer from = pair.a.buffer(1 << 20);
  Buffer into = pair.b.buffer(1 << 20);
  from.data()[(1 << 20) - 1] = 1;
  REQUIRE(post(pair.a.qp, unsignaled(write_work(from.all(), into.all()))) == 0);
  wait_until([&] { return into.peek((1 << 20) - 1) == 1; }, "the last byte");
}

TEST_CASE("data: max_sge SGEs work on both sides", "[softnic][data]") {
  const TestFabric fabric;
  ibv_device_attr attr{};
  REQUIRE(ibv_query_device(open_device("softnic0").get(), &attr) == 0);
  const auto count = static_cast<std::size_t>(attr.max_sge);
  const QpShape shape{.max_sge = static_cast<std::uint32_t>(count)};
  Endpoint a("softnic0", shape);
  Endpoint b("softnic1", shape);
  connect_both(a.qp, b.qp);
  Buffer from = a.buffer(3 * count);
  Buffer into = b.buffer(3 * count);
  from.fill(1);
  SendWork send{.opcode = IBV_WR_SEND, .wr_id = 1};
  RecvWork recv{.wr_id = 2};
  // The same bytes in other pieces, from the end to the beginning.
  for (std::size_t i = 0; i < count; ++i) {
    send.local.push_back(from.part(3 * i, 3).sge());
    recv.local.push_back(into.part(3 * (count - 1 - i), 3).sge());
  }
  REQUIRE(post(b.qp, recv) == 0);
  REQUIRE(post(a.qp, send) == 0);
  must_complete(a.send_cq.get(), 1);
  must_complete(b.recv_cq.get(), 2);
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(has_pattern(into.bytes(3 * (count - 1 - i), 3), 1, 3 * i));
  }
}
