// SPDX-License-Identifier: Apache-2.0
//
// The interface ibv_wr_*: the same operations as ibv_post_send, posted together or not at all.
#include <array>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::uint64_t kOperations = IBV_QP_EX_WITH_RDMA_WRITE |
                                      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                                      IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ;

ibv_qp_init_attr_ex extended_attr(const Nic& nic, std::uint64_t operations,
                                  const QpShape& shape = {}) {
  const ibv_qp_init_attr plain = init_attr(nic, shape);
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = plain.send_cq;
  attr.recv_cq = plain.recv_cq;
  attr.cap = plain.cap;
  attr.qp_type = plain.qp_type;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = nic.pd.get();
  attr.send_ops_flags = operations;
  return attr;
}

// An extended QP on softnic0, connected to a plain one on softnic1, and a buffer on each side.
struct WrApiScene {
  explicit WrApiScene(const QpShape& shape = {}) : a("softnic0"), b("softnic1") {
    ibv_qp_init_attr_ex attr = extended_attr(a, kOperations, shape);
    owned.reset(ibv_create_qp_ex(a.context.get(), &attr));
    BL_MUST(owned != nullptr);
    cap = attr.cap;
    qp = ibv_qp_to_qp_ex(owned.get());
    BL_MUST(qp != nullptr);
    connect_both(owned.get(), b.qp);
    local.fill(1);
  }

  void start(std::uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_wr_start(qp);
    next(wr_id, flags);
  }
  void next(std::uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    qp->wr_id = wr_id;
    qp->wr_flags = flags;
  }
  void set(const Region& region) { ibv_wr_set_sge(qp, region.lkey, region.addr, region.length); }
  ibv_wc done() { return poll_one(a.send_cq.get()); }

  TestFabric fabric;
  Nic a;
  Endpoint b;
  QpPtr owned;
  ibv_qp_ex* qp = nullptr;
  ibv_qp_cap cap{};
  Buffer local{a.pd.get(), 1000};
  Buffer remote = b.buffer(1000);
};

}  // namespace

TEST_CASE("wr_api: an extended queue pair is a plain one too", "[softnic][wr_api]") {
  WrApiScene scene;
  CHECK(&scene.qp->qp_base == scene.owned.get());
  CHECK(scene.cap.max_send_wr >= 64);
  REQUIRE(post(scene.owned.get(), write_work(scene.local.all(), scene.remote.all(), 1)) == 0);
  CHECK(scene.done().wr_id == 1);
  CHECK(scene.remote.has(1));
}

TEST_CASE("wr_api: WRITE, with and without immediate", "[softnic][wr_api]") {
  WrApiScene scene;
  const Region to = scene.remote.part(100, 50);
  SECTION("plain") {
    scene.start(5);
    ibv_wr_rdma_write(scene.qp, to.rkey, to.addr);
  }
  SECTION("with immediate") {
    REQUIRE(post(scene.b.qp, RecvWork{.wr_id = 9}) == 0);
    scene.start(5);
    ibv_wr_rdma_write_imm(scene.qp, to.rkey, to.addr, 0x11223344);
  }
  scene.set(scene.local.part(10, 50));
  REQUIRE(ibv_wr_complete(scene.qp) == 0);
  const ibv_wc wc = scene.done();
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.wr_id == 5);
  CHECK(wc.opcode == IBV_WC_RDMA_WRITE);
  CHECK(has_pattern(scene.remote.bytes(100, 50), 1, 10));
  ibv_wc received{};
  if (ibv_poll_cq(scene.b.recv_cq.get(), 1, &received) == 1) {
    CHECK(received.wr_id == 9);
    CHECK(received.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK(received.imm_data == 0x11223344);
    CHECK(received.byte_len == 50);
  }
}

TEST_CASE("wr_api: SEND, with and without immediate", "[softnic][wr_api]") {
  const bool with_imm = GENERATE(false, true);
  WrApiScene scene;
  REQUIRE(post(scene.b.qp, recv_work(scene.remote.all(), 9)) == 0);
  scene.start(5);
  if (with_imm) {
    ibv_wr_send_imm(scene.qp, 0x55667788);
  } else {
    ibv_wr_send(scene.qp);
  }
  scene.set(scene.local.part(0, 200));
  REQUIRE(ibv_wr_complete(scene.qp) == 0);
  CHECK(scene.done().opcode == IBV_WC_SEND);
  const ibv_wc received = poll_one(scene.b.recv_cq.get());
  CHECK(received.byte_len == 200);
  CHECK(received.opcode == IBV_WC_RECV);
  CHECK(received.wc_flags == (with_imm ? unsigned{IBV_WC_WITH_IMM} : 0u));
  if (with_imm) CHECK(received.imm_data == 0x55667788);
  CHECK(has_pattern(scene.remote.bytes(0, 200), 1));
}

TEST_CASE("wr_api: READ", "[softnic][wr_api]") {
  WrApiScene scene;
  scene.remote.fill(2);
  const Region from = scene.remote.part(7, 300);
  scene.start(5);
  ibv_wr_rdma_read(scene.qp, from.rkey, from.addr);
  scene.set(scene.local.part(0, 300));
  REQUIRE(ibv_wr_complete(scene.qp) == 0);
  const ibv_wc wc = scene.done();
  CHECK(wc.opcode == IBV_WC_RDMA_READ);
  CHECK(wc.byte_len == 300);
  CHECK(has_pattern(scene.local.bytes(0, 300), 2, 7));
}

TEST_CASE("wr_api: a list of pieces is one message", "[softnic][wr_api]") {
  WrApiScene scene;
  const Region to = scene.remote.all();
  const std::array<ibv_sge, 3> pieces = {scene.local.part(500, 100).sge(),
                                         scene.local.part(0, 1).sge(),
                                         scene.local.part(200, 99).sge()};
  scene.start(5);
  ibv_wr_rdma_write(scene.qp, to.rkey, to.addr);
  ibv_wr_set_sge_list(scene.qp, pieces.size(), pieces.data());
  REQUIRE(ibv_wr_complete(scene.qp) == 0);
  CHECK(scene.done().status == IBV_WC_SUCCESS);
  CHECK(has_pattern(scene.remote.bytes(0, 100), 1, 500));
  CHECK(has_pattern(scene.remote.bytes(100, 1), 1, 0));
  CHECK(has_pattern(scene.remote.bytes(101, 99), 1, 200));
  CHECK(scene.remote.is_zero(200, 800));
}

TEST_CASE("wr_api: inline data is copied at once", "[softnic][wr_api]") {
  WrApiScene scene;
  const Region to = scene.remote.all();
  std::vector<std::uint8_t> bytes(60);
  fill_pattern(bytes, 3);
  scene.start(5);
  ibv_wr_rdma_write(scene.qp, to.rkey, to.addr);
  SECTION("one buffer") { ibv_wr_set_inline_data(scene.qp, bytes.data(), bytes.size()); }
  SECTION("several") {
    const std::array<ibv_data_buf, 3> list = {
        {{bytes.data(), 10}, {bytes.data() + 10, 0}, {bytes.data() + 10, 50}}};
    ibv_wr_set_inline_data_list(scene.qp, list.size(), list.data());
  }
  bytes.assign(60, 0);
  REQUIRE(ibv_wr_complete(scene.qp) == 0);
  CHECK(scene.done().status == IBV_WC_SUCCESS);
  CHECK(has_pattern(scene.remote.bytes(0, 60), 3));
  CHECK(scene.remote.is_zero(60, 900));
}

TEST_CASE("wr_api: several requests are posted together, each with its own id and flags",
          "[softnic][wr_api]") {
  WrApiScene scene;
  REQUIRE(post(scene.b.qp, RecvWork{.wr_id = 9}) == 0);
  scene.start(1, 0);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    scene.next(i, i == 3 ? unsigned{IBV_SEND_SIGNALED} : 0u);
    const Region to = scene.remote.part(i * 10, 10);
    ibv_wr_rdma_write(scene.qp, to.rkey, to.addr);
    scene.set(scene.local.part(i * 10, 10));
  }
  scene.next(5);
  ibv_wr_send(scene.qp);
  ibv_wr_set_sge_list(scene.qp, 0, nullptr);
  REQUIRE(ibv_wr_complete(scene.qp) == 0);
  CHECK(scene.done().wr_id == 3);
  CHECK(scene.done().wr_id == 5);
  must_complete(scene.b.recv_cq.get(), 9);
  CHECK(has_pattern(scene.remote.bytes(10, 40), 1, 10));
  CHECK(is_empty(scene.a.send_cq.get()));
}

TEST_CASE("wr_api: a bad request aborts the whole post", "[softnic][wr_api]") {
  WrApiScene scene;
  const Region to = scene.remote.all();
  scene.start(1);
  ibv_wr_rdma_write(scene.qp, to.rkey, to.addr);
  scene.set(scene.local.all());
  scene.next(2);
  ibv_wr_rdma_write(scene.qp, to.rkey, to.addr);
  SECTION("inline too long") {
    std::vector<std::uint8_t> bytes(scene.cap.max_inline_data + 1);
    ibv_wr_set_inline_data(scene.qp, bytes.data(), bytes.size());
    CHECK(ibv_wr_complete(scene.qp) == EINVAL);
  }
  SECTION("too many pieces") {
    const std::vector<ibv_sge> pieces(scene.cap.max_send_sge + 1, scene.local.part(0, 1).sge());
    ibv_wr_set_sge_list(scene.qp, pieces.size(), pieces.data());
    CHECK(ibv_wr_complete(scene.qp) == EINVAL);
  }
  // The valid request was not posted either, and the next post works.
  scene.start(3);
  ibv_wr_rdma_read(scene.qp, to.rkey, to.addr);
  scene.set(scene.local.part(0, 500));
  REQUIRE(ibv_wr_complete(scene.qp) == 0);
  CHECK(scene.done().wr_id == 3);
  CHECK(scene.local.is_zero(0, 500));
}

TEST_CASE("wr_api: if the queue has too little room, no request is posted", "[softnic][wr_api]") {
  WrApiScene scene({.send_depth = 4});
  const Region to = scene.remote.all();
  const auto build = [&](std::uint32_t count) {
    ibv_wr_start(scene.qp);
    for (std::uint32_t i = 0; i < count; ++i) {
      scene.next(i);
      ibv_wr_rdma_write(scene.qp, to.rkey, to.addr);
      scene.set(scene.local.part(0, 1));
    }
    return ibv_wr_complete(scene.qp);
  };
  CHECK(build(scene.cap.max_send_wr + 1) == ENOMEM);
  CHECK(build(scene.cap.max_send_wr) == 0);
  for (std::uint32_t i = 0; i < scene.cap.max_send_wr; ++i) CHECK(scene.done().wr_id == i);
  CHECK(is_empty(scene.a.send_cq.get()));
}

TEST_CASE("wr_api: missing operations make the creation fail", "[softnic][wr_api]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  const std::uint64_t operation =
      GENERATE(std::uint64_t{IBV_QP_EX_WITH_BIND_MW}, std::uint64_t{IBV_QP_EX_WITH_TSO},
               std::uint64_t{1} << 40);
  ibv_qp_init_attr_ex attr = extended_attr(nic, IBV_QP_EX_WITH_SEND | operation);
  errno = 0;
  const QpPtr qp(ibv_create_qp_ex(nic.context.get(), &attr));
  CHECK(qp == nullptr);
  CHECK((errno == EOPNOTSUPP || errno == EINVAL));
}

TEST_CASE("wr_api: without builder operations it is a plain queue pair", "[softnic][wr_api]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_qp_init_attr_ex attr = extended_attr(nic, 0);
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  const QpPtr qp(ibv_create_qp_ex(nic.context.get(), &attr));
  REQUIRE(qp != nullptr);
  connect(qp.get(), address_of(qp.get()));
  REQUIRE(post(qp.get(), nothing_work(1)) == 0);
  must_complete(nic.send_cq.get(), 1);
}

TEST_CASE("wr_api: a post before RTS fails as a whole", "[softnic][wr_api]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_qp_init_attr_ex attr = extended_attr(nic, kOperations);
  const QpPtr qp(ibv_create_qp_ex(nic.context.get(), &attr));
  REQUIRE(qp != nullptr);
  to_init(qp.get());
  ibv_qp_ex* builder = ibv_qp_to_qp_ex(qp.get());
  ibv_wr_start(builder);
  ibv_wr_send(builder);
  ibv_wr_set_sge_list(builder, 0, nullptr);
  CHECK(ibv_wr_complete(builder) == EINVAL);
}
