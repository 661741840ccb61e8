// SPDX-License-Identifier: Apache-2.0
//
// Failures of work requests, and the status on each side.
#include <sys/mman.h>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

// A pair with memory on both sides, posted receives at B, and access rights that a test can
// restrict.
struct Scene {
  explicit Scene(const Wire& wire = {}, double clock_scale = 0.01)
      : pair({.clock_scale = clock_scale, .wire = wire}),
        local(pair.a.buffer(64)),
        remote(pair.b.buffer(64)) {
    local.fill(1);
    remote.fill(2);
  }

  ibv_qp* qp() const { return pair.a.qp; }
  ibv_wc requester() { return poll_one(pair.a.send_cq.get()); }
  ibv_wc receiver() { return poll_one(pair.b.recv_cq.get()); }

  Pair pair;
  Buffer local;
  Buffer remote;
};

void check_wc(const ibv_wc& wc, std::uint64_t wr_id, ibv_wc_status status, const ibv_qp* qp) {
  CHECK(wc.wr_id == wr_id);
  CHECK(wc.status == status);
  CHECK(wc.qp_num == qp->qp_num);
}

}  // namespace

TEST_CASE("error: a message of more than a gigabyte is too long", "[softnic][error]") {
  const auto opcode = GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ);
  constexpr std::size_t kGiga = std::size_t{1} << 30;
  Scene scene;
  // Reserved address space that is never accessed.
  void* const space = mmap(nullptr, kGiga, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(space != MAP_FAILED);
  {
    const MrPtr local(ibv_reg_mr(scene.pair.a.pd.get(), space, kGiga, kAllAccess));
    const MrPtr remote(ibv_reg_mr(scene.pair.b.pd.get(), space, kGiga, kAllAccess));
    REQUIRE(local != nullptr);
    REQUIRE(remote != nullptr);
    const auto addr = reinterpret_cast<std::uint64_t>(space);
    SendWork work{.opcode = opcode, .wr_id = 1, .remote_addr = addr, .rkey = remote->rkey};
    work.local = {{addr, 1u << 30, local->lkey}, {addr, 1, local->lkey}};
    REQUIRE(post(scene.qp(), work) == 0);
    check_wc(scene.requester(), 1, IBV_WC_LOC_LEN_ERR, scene.qp());
    CHECK(state_of(scene.qp()) == IBV_QPS_ERR);
  }
  munmap(space, kGiga);
}

TEST_CASE("error: without a receive the retries run out", "[softnic][error]") {
  const auto opcode = GENERATE(IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
  const std::uint8_t retries = GENERATE(std::uint8_t{0}, std::uint8_t{3});
  Scene scene({.rnr_retry = retries, .min_rnr_timer = 16});
  SendWork work = write_work(scene.local.all(), scene.remote.all(), 1);
  work.opcode = opcode;
  REQUIRE(post(scene.qp(), work) == 0);
  check_wc(scene.requester(), 1, IBV_WC_RNR_RETRY_EXC_ERR, scene.qp());
  CHECK(state_of(scene.qp()) == IBV_QPS_ERR);
  CHECK(state_of(scene.pair.b.qp) == IBV_QPS_RTS);  // the responder is not affected
}

TEST_CASE("error: a long message needs the same path MTU at both ends", "[softnic][error]") {
  struct Case {
    ibv_mtu ours, theirs;
    std::size_t bytes;
    ibv_wc_status status;
  };
  const Case c = GENERATE(values<Case>({
      {IBV_MTU_1024, IBV_MTU_4096, 1024, IBV_WC_SUCCESS},
      {IBV_MTU_1024, IBV_MTU_4096, 1025, IBV_WC_REM_INV_REQ_ERR},
      {IBV_MTU_4096, IBV_MTU_1024, 1024, IBV_WC_SUCCESS},
      {IBV_MTU_4096, IBV_MTU_1024, 1025, IBV_WC_REM_INV_REQ_ERR},
      {IBV_MTU_1024, IBV_MTU_1024, 5000, IBV_WC_SUCCESS},
  }));
  INFO("MTU codes " << c.ours << " and " << c.theirs << ", " << c.bytes << " bytes");
  Pair pair;
  connect(pair.b.qp, address_of(pair.a.qp), {.mtu = c.theirs});
  connect(pair.a.qp, address_of(pair.b.qp), {.mtu = c.ours});
  Buffer local = pair.a.buffer(c.bytes);
  Buffer remote = pair.b.buffer(c.bytes);
  REQUIRE(post(pair.a.qp, write_work(local.all(), remote.all(), 1)) == 0);
  check_wc(poll_one(pair.a.send_cq.get()), 1, c.status, pair.a.qp);
}
