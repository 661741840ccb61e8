// SPDX-License-Identifier: Apache-2.0
//
// The simulated device does what a device does. The cases follow those of tests/beds/conformance,
// which run against softnic and real devices.
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/plugin/simulation/nic.h"
#include "tests/support/catch.h"

namespace beeline::simulation {
namespace {

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr std::uint8_t kTimeout = 10;  // 4.2 ms
constexpr std::uint8_t kRetries = 3;

// One end of a connection: a device with a queue pair, and 1 KiB of registered memory.
struct Side {
  Nic* nic = nullptr;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* region = nullptr;
  std::array<char, 1024> bytes{};

  std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(bytes.data()) + offset;
  }
};

class Wire {
 public:
  explicit Wire(std::uint32_t depth = 16, int rights = kAll) {
    for (Side* const side : {&a, &b}) {
      side->nic = &nics.add("nic", 100'000);
      side->context = side->nic->open();
      side->pd = api.alloc_pd(side->context);
      side->cq = api.create_cq(side->context, 64, nullptr, nullptr, 0);
      side->region = api.reg_mr(side->pd, side->bytes.data(), side->bytes.size(), rights);
      ibv_qp_init_attr init = {};
      init.send_cq = init.recv_cq = side->cq;
      init.cap = {.max_send_wr = depth,
                  .max_recv_wr = depth,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = 64};
      side->qp = api.create_qp(side->pd, &init);
    }
    connect(a, b);
    connect(b, a);
  }
  ~Wire() {
    for (Side* const side : {&a, &b}) {
      if (side->qp != nullptr) api.destroy_qp(side->qp);
      api.destroy_cq(side->cq);
      api.dereg_mr(side->region);
      api.dealloc_pd(side->pd);
    }
    CHECK(nics.objects() == 0);
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int modify(Side& side, ibv_qp_state state) {
    ibv_qp_attr attr = {};
    attr.qp_state = state;
    return api.modify_qp(side.qp, &attr, IBV_QP_STATE);
  }
  static ibv_send_wr write(const Side& from, const Side& to, std::uint32_t length,
                           ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE) {
    static ibv_sge piece;
    piece = {.addr = from.at(0), .length = length, .lkey = from.region->lkey};
    ibv_send_wr wr = {};
    wr.wr_id = 7;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = to.at(512);
    wr.wr.rdma.rkey = to.region->rkey;
    return wr;
  }
  static int post(Side& side, ibv_send_wr wr) {
    ibv_send_wr* refused = nullptr;
    return ibv_post_send(side.qp, &wr, &refused);
  }
  static int receive(Side& side, std::uint64_t id) {
    ibv_sge place = {.addr = side.at(256), .length = 64, .lkey = side.region->lkey};
    ibv_recv_wr wr = {};
    wr.wr_id = id;
    wr.sg_list = &place;
    wr.num_sge = 1;
    ibv_recv_wr* refused = nullptr;
    return ibv_post_recv(side.qp, &wr, &refused);
  }
  void run(std::int64_t time_ns) {
    const std::int64_t end = agenda.now() + time_ns;
    while (agenda.step(end)) continue;
  }
  static std::vector<ibv_wc> completions(Side& side) {
    std::vector<ibv_wc> all(64);
    all.resize(static_cast<std::size_t>(ibv_poll_cq(side.cq, 64, all.data())));
    return all;
  }

  Agenda agenda;
  Network network{agenda, 1};
  Payload payload;
  Nics nics{agenda, network, payload};
  const verbs::Api& api = Nics::api();
  Side a;
  Side b;

 private:
  void connect(Side& side, const Side& peer) {
    REQUIRE(modify(side, IBV_QPS_INIT) == 0);
    static_cast<NicQp*>(side.qp)->access = kAll;
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.dest_qp_num = peer.qp->qp_num;
    attr.rq_psn = 100;
    const auto gid = peer.nic->gid();
    std::memcpy(attr.ah_attr.grh.dgid.raw, gid.data(), gid.size());
    REQUIRE(api.modify_qp(side.qp, &attr, IBV_QP_STATE) == 0);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 100;
    attr.timeout = kTimeout;
    attr.retry_cnt = kRetries;
    REQUIRE(api.modify_qp(side.qp, &attr, IBV_QP_STATE) == 0);
  }
};

}  // namespace

TEST_CASE("simulated device: a write arrives, and then completes", "[simulation][nic]") {
  Wire wire;
  wire.a.bytes[0] = 'x';
  REQUIRE(Wire::post(wire.a, Wire::write(wire.a, wire.b, 100)) == 0);
  CHECK(Wire::completions(wire.a).empty());
  wire.run(kMs);
  CHECK(wire.b.bytes[512] == 'x');
  const auto done = Wire::completions(wire.a);
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 7);
  CHECK(done[0].status == IBV_WC_SUCCESS);
  CHECK(Wire::completions(wire.b).empty());
}

TEST_CASE("simulated device: an immediate and a send take a receive each", "[simulation][nic]") {
  Wire wire;
  const auto opcode = GENERATE(IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND);
  REQUIRE(Wire::receive(wire.b, 31) == 0);
  wire.a.bytes[0] = 'y';
  ibv_send_wr wr = Wire::write(wire.a, wire.b, 40, opcode);
  wr.imm_data = 5;
  REQUIRE(Wire::post(wire.a, wr) == 0);
  wire.run(kMs);
  const auto done = Wire::completions(wire.b);
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 31);
  CHECK(done[0].byte_len == 40);
  const bool is_send = opcode == IBV_WR_SEND;
  CHECK(wire.b.bytes[is_send ? 256 : 512] == 'y');
  CHECK(((done[0].wc_flags & IBV_WC_WITH_IMM) != 0) == !is_send);
}

TEST_CASE("simulated device: without a receive, the requester waits and tries again",
          "[simulation][nic]") {
  Wire wire;
  REQUIRE(Wire::post(wire.a, Wire::write(wire.a, wire.b, 40, IBV_WR_RDMA_WRITE_WITH_IMM)) == 0);
  wire.run(100 * kMs);  // longer than all retries
  CHECK(Wire::completions(wire.a).empty());
  REQUIRE(Wire::receive(wire.b, 1) == 0);
  wire.run(10 * kMs);
  CHECK(Wire::completions(wire.a).size() == 1);
  CHECK(Wire::completions(wire.b).size() == 1);
}

TEST_CASE("simulated device: a wrong remote key, range or right is an error at both ends",
          "[simulation][nic]") {
  Wire wire(16, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(Wire::receive(wire.b, 1) == 0);
  ibv_send_wr wr = Wire::write(wire.a, wire.b, 100);
  SECTION("the region may not be written") {}
  SECTION("the key") { wr.wr.rdma.rkey += 1; }
  SECTION("the end") { wr.wr.rdma.remote_addr = wire.b.at(1000); }
  REQUIRE(Wire::post(wire.a, wr) == 0);
  wire.run(kMs);
  const auto here = Wire::completions(wire.a);
  REQUIRE(here.size() == 1);
  CHECK(here[0].status == IBV_WC_REM_ACCESS_ERR);
  const auto there = Wire::completions(wire.b);
  REQUIRE(there.size() == 1);
  CHECK(there[0].status == IBV_WC_WR_FLUSH_ERR);
}

TEST_CASE("simulated device: a wrong local key fails the request", "[simulation][nic]") {
  Wire wire;
  ibv_send_wr wr = Wire::write(wire.a, wire.b, 100);
  wr.sg_list->lkey += 1;
  REQUIRE(Wire::post(wire.a, wr) == 0);
  wire.run(kMs);
  const auto done = Wire::completions(wire.a);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == IBV_WC_LOC_PROT_ERR);
}

TEST_CASE("simulated device: posts are refused in a wrong state, and beyond the depth",
          "[simulation][nic]") {
  Wire wire(4);
  const ibv_send_wr wr = Wire::write(wire.a, wire.b, 8);
  for (int i = 0; i < 4; ++i) CHECK(Wire::post(wire.a, wr) == 0);
  CHECK(Wire::post(wire.a, wr) == ENOMEM);
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(Wire::receive(wire.b, i) == 0);
  CHECK(Wire::receive(wire.b, 4) == ENOMEM);
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = wire.a.cq;
  init.cap.max_send_wr = 4;
  init.cap.max_send_sge = 1;
  Side fresh;
  fresh.qp = wire.api.create_qp(wire.a.pd, &init);
  CHECK(Wire::post(fresh, wr) == EINVAL);
  CHECK(wire.modify(fresh, IBV_QPS_RTS) == EINVAL);
  wire.api.destroy_qp(fresh.qp);
}

TEST_CASE("simulated device: ERROR flushes both queues in order, and drops what comes",
          "[simulation][nic]") {
  Wire wire;
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(Wire::receive(wire.b, 10 + i) == 0);
  REQUIRE(Wire::post(wire.a, Wire::write(wire.a, wire.b, 8)) == 0);
  REQUIRE(wire.modify(wire.b, IBV_QPS_ERR) == 0);
  CHECK(Wire::completions(wire.b).empty());  // a device takes its time
  wire.run(kMs);
  const auto flushed = Wire::completions(wire.b);
  REQUIRE(flushed.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(flushed[i].wr_id == 10 + i);
    CHECK(flushed[i].status == IBV_WC_WR_FLUSH_ERR);
  }
  wire.a.bytes[0] = 'z';
  wire.run(kMs);
  CHECK(wire.b.bytes[512] == 0);
  // Requests that are posted now are flushed, too.
  CHECK(Wire::post(wire.b, Wire::write(wire.b, wire.a, 8)) == 0);
  wire.run(kMs);
  CHECK(Wire::completions(wire.b).size() == 1);
}

TEST_CASE("simulated device: a requester that gets no answer gives up after its retries",
          "[simulation][nic]") {
  Wire wire;
  const int why = GENERATE(0, 1, 2);
  if (why == 0) wire.network.set_up(wire.b.nic->port(), false);
  if (why == 1)
    wire.network.set_fault(wire.a.nic->port(), wire.b.nic->port(), {.loss_percent = 100});
  if (why == 2) {
    wire.api.destroy_qp(wire.b.qp);
    wire.b.qp = nullptr;
  }
  CAPTURE(why);
  REQUIRE(Wire::post(wire.a, Wire::write(wire.a, wire.b, 8)) == 0);
  REQUIRE(Wire::post(wire.a, Wire::write(wire.a, wire.b, 8)) == 0);
  constexpr std::int64_t kOne = 4096LL << kTimeout;
  wire.run(kOne * kRetries);
  CHECK(Wire::completions(wire.a).empty());
  wire.run(kOne * 2);
  const auto done = Wire::completions(wire.a);
  REQUIRE(done.size() == 2);
  CHECK(done[0].status == IBV_WC_RETRY_EXC_ERR);
  CHECK(done[1].status == IBV_WC_WR_FLUSH_ERR);
}

TEST_CASE("simulated device: loss, delay and doubles change neither order nor content",
          "[simulation][nic]") {
  Wire wire;
  const Network::Port from = wire.a.nic->port();
  const Network::Port to = wire.b.nic->port();
  wire.network.set_fault(from, to,
                         {.loss_percent = 20, .doubled_percent = 30, .most_delay_ns = kMs});
  wire.network.set_fault(to, from, {.loss_percent = 20});
  for (std::uint32_t i = 0; i < 12; ++i) {
    REQUIRE(Wire::receive(wire.b, i) == 0);
    ibv_send_wr wr = Wire::write(wire.a, wire.b, 8, IBV_WR_RDMA_WRITE_WITH_IMM);
    wr.wr_id = i;
    wr.imm_data = i;
    REQUIRE(Wire::post(wire.a, wr) == 0);
  }
  wire.run(kSec);
  const auto here = Wire::completions(wire.a);
  const auto there = Wire::completions(wire.b);
  REQUIRE(here.size() == 12);
  REQUIRE(there.size() == 12);
  for (std::uint32_t i = 0; i < 12; ++i) {
    CHECK(here[i].wr_id == i);
    CHECK(there[i].imm_data == i);
  }
}

TEST_CASE("simulated device: a READ brings the bytes of the peer", "[simulation][nic]") {
  Wire wire;
  wire.b.bytes[512] = 'r';
  REQUIRE(Wire::post(wire.a, Wire::write(wire.a, wire.b, 8, IBV_WR_RDMA_READ)) == 0);
  wire.run(kMs);
  CHECK(wire.a.bytes[0] == 'r');
  CHECK(Wire::completions(wire.a).size() == 1);
}

TEST_CASE("simulated device: inline data is copied when it is posted", "[simulation][nic]") {
  Wire wire;
  wire.a.bytes[0] = '1';
  ibv_send_wr wr = Wire::write(wire.a, wire.b, 8);
  wr.send_flags |= IBV_SEND_INLINE;
  REQUIRE(Wire::post(wire.a, wr) == 0);
  wire.a.bytes[0] = '2';
  wire.run(kMs);
  CHECK(wire.b.bytes[512] == '1');
  wr.sg_list->length = 65;
  CHECK(Wire::post(wire.a, wr) == EINVAL);
}

TEST_CASE("simulated device: unsignaled requests have no completion", "[simulation][nic]") {
  Wire wire;
  ibv_send_wr wr = Wire::write(wire.a, wire.b, 8);
  wr.send_flags = 0;
  REQUIRE(Wire::post(wire.a, wr) == 0);
  wire.run(kMs);
  CHECK(Wire::completions(wire.a).empty());
}

TEST_CASE("simulated device: one that was removed refuses everything and completes nothing",
          "[simulation][nic]") {
  Wire wire;
  REQUIRE(Wire::post(wire.a, Wire::write(wire.a, wire.b, 8)) == 0);
  wire.a.nic->remove();
  CHECK(Wire::post(wire.a, Wire::write(wire.a, wire.b, 8)) == EIO);
  CHECK(wire.modify(wire.a, IBV_QPS_ERR) == ENODEV);
  CHECK(wire.api.create_cq(wire.a.context, 4, nullptr, nullptr, 0) == nullptr);
  wire.run(kSec);
  CHECK(Wire::completions(wire.a).empty());
}

TEST_CASE("simulated device: a port that is DOWN says so", "[simulation][nic]") {
  Wire wire;
  ibv_port_attr attr = {};
  auto* const old = reinterpret_cast<_compat_ibv_port_attr*>(&attr);
  REQUIRE(wire.api.query_port_compat(wire.a.context, 1, old) == 0);
  CHECK(attr.state == IBV_PORT_ACTIVE);
  wire.network.set_up(wire.a.nic->port(), false);
  REQUIRE(wire.api.query_port_compat(wire.a.context, 1, old) == 0);
  CHECK(attr.state == IBV_PORT_DOWN);
}

TEST_CASE("simulated device: payload is noted, and its owner is asked", "[simulation][nic]") {
  Wire wire;
  const std::size_t source = wire.payload.add(4096, false);
  const std::size_t target = wire.payload.add(4096, false);
  wire.payload.at(source).message = 99;
  ibv_mr* const out = wire.api.reg_mr(
      wire.a.pd, reinterpret_cast<void*>(wire.payload.at(source).address), 4096, kAll);
  ibv_mr* const in = wire.api.reg_mr(
      wire.b.pd, reinterpret_cast<void*>(wire.payload.at(target).address), 4096, kAll);
  ibv_send_wr wr = Wire::write(wire.a, wire.b, 1000);
  *wr.sg_list = {.addr = wire.payload.at(source).address, .length = 1000, .lkey = out->lkey};
  wr.wr.rdma = {.remote_addr = wire.payload.at(target).address, .rkey = in->rkey};
  SECTION("granted") {
    wire.payload.at(target).granted = 1000;
    wire.payload.at(target).expected = 99;
    REQUIRE(Wire::post(wire.a, wr) == 0);
    wire.run(kMs);
    CHECK(Payload::check(wire.payload.at(target), 99, 1000).empty());
    CHECK_FALSE(Payload::check(wire.payload.at(target), 99, 1001).empty());
    CHECK_FALSE(Payload::check(wire.payload.at(target), 98, 1000).empty());
    CHECK(wire.nics.violation().empty());
  }
  SECTION("granted, but less") {
    wire.payload.at(target).granted = 999;
    wire.payload.at(target).expected = 99;
    REQUIRE(Wire::post(wire.a, wr) == 0);
    wire.run(kMs);
    CHECK(wire.nics.violation().find("beyond what was granted") != std::string::npos);
  }
  SECTION("not granted") {
    REQUIRE(Wire::post(wire.a, wr) == 0);
    wire.run(kMs);
    CHECK(wire.nics.violation().find("not granted") != std::string::npos);
  }
  wire.api.dereg_mr(out);
  wire.api.dereg_mr(in);
}

}  // namespace beeline::simulation
