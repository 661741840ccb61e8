// SPDX-License-Identifier: Apache-2.0
//
// nullverbs executes work requests and checks what a device checks, so that programs that are
// measured over it would work over a device.
#include <infiniband/verbs.h>

#include <cerrno>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/must.h"
#include "tests/support/nullverbs/report.h"
#include "tests/support/verbs_connect.h"
#include "tests/support/verbs_memory.h"
#include "tests/support/verbs_work.h"

namespace beeline::test {
namespace {

ContextPtr open_only_device() {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  BL_MUST(list != nullptr && count == 1);
  ContextPtr context(ibv_open_device(list[0]));
  ibv_free_device_list(list);
  BL_MUST(context != nullptr);
  return context;
}

// One end, with its own protection domain and completion queue.
struct End {
  explicit End(std::uint32_t send_depth = 16) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq.get();
    attr.cap = {send_depth, 16, 2, 1, 64};
    attr.qp_type = IBV_QPT_RC;
    qp.reset(ibv_create_qp(pd.get(), &attr));
    BL_MUST(qp != nullptr);
  }

  ContextPtr context = open_only_device();
  PdPtr pd{ibv_alloc_pd(context.get())};
  CqPtr cq{ibv_create_cq(context.get(), 64, nullptr, nullptr, 0)};
  Buffer memory{pd.get(), 256};
  QpPtr qp;
};

struct Pair {
  Pair() {
    connect_both(a.qp.get(), b.qp.get(), {.sgid_index = 0});
    a.memory.fill(1);
  }
  ibv_wc_status status_of(const SendWork& work) {
    BL_MUST_OK(post(a.qp.get(), work));
    return poll_one(a.cq.get()).status;
  }

  End a;
  End b;
};

TEST_CASE("nullverbs: a write lands before the post returns", "[nullverbs]") {
  Pair pair;
  REQUIRE(post(pair.a.qp.get(), write_work(pair.a.memory.all(), pair.b.memory.all(), 7)) == 0);
  CHECK(pair.b.memory.has(1));
  CHECK(pair.b.memory.guards_intact());
  must_complete(pair.a.cq.get(), 7);
  CHECK(is_empty(pair.b.cq.get()));
}

TEST_CASE("nullverbs: a write with an immediate takes a receive and tells its size",
          "[nullverbs]") {
  Pair pair;
  REQUIRE(post(pair.b.qp.get(), RecvWork{.wr_id = 5}) == 0);
  const Region to = pair.b.memory.part(0, 100);
  REQUIRE(post(pair.a.qp.get(), write_imm_work(pair.a.memory.part(0, 100), to, 0x1234, 7)) == 0);
  const ibv_wc told = poll_one(pair.b.cq.get());
  CHECK(told.status == IBV_WC_SUCCESS);
  CHECK(told.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
  CHECK(told.wr_id == 5);
  CHECK(told.byte_len == 100);
  CHECK(told.imm_data == 0x1234);
  CHECK((told.wc_flags & IBV_WC_WITH_IMM) != 0);
  CHECK(poll_one(pair.a.cq.get()).opcode == IBV_WC_RDMA_WRITE);
}

TEST_CASE("nullverbs: a send fills the receive, and a read fetches", "[nullverbs]") {
  Pair pair;
  REQUIRE(post(pair.b.qp.get(), recv_work(pair.b.memory.all(), 5)) == 0);
  REQUIRE(post(pair.a.qp.get(), send_work(pair.a.memory.all(), 7)) == 0);
  CHECK(pair.b.memory.has(1));
  CHECK(poll_one(pair.b.cq.get()).opcode == IBV_WC_RECV);
  must_complete(pair.a.cq.get(), 7);
  pair.b.memory.fill(2);
  CHECK(pair.status_of(read_work(pair.a.memory.all(), pair.b.memory.all())) == IBV_WC_SUCCESS);
  CHECK(pair.a.memory.has(2));
}

TEST_CASE("nullverbs: unsignalled work is silent and keeps its place until a later one completes",
          "[nullverbs]") {
  Pair pair;
  const SendWork work = write_work(pair.a.memory.all(), pair.b.memory.all(), 7);
  for (int i = 0; i < 15; ++i) REQUIRE(post(pair.a.qp.get(), unsignaled(work)) == 0);
  CHECK(is_empty(pair.a.cq.get()));
  REQUIRE(post(pair.a.qp.get(), work) == 0);
  CHECK(post(pair.a.qp.get(), work) == ENOMEM);  // completed, but not polled
  must_complete(pair.a.cq.get(), 7);
  for (int i = 0; i < 16; ++i) REQUIRE(post(pair.a.qp.get(), unsignaled(work)) == 0);
}

TEST_CASE("nullverbs: work that a device would refuse fails as it does there", "[nullverbs]") {
  Pair pair;
  const Region from = pair.a.memory.all();
  const Region to = pair.b.memory.all();
  SECTION("a byte beyond the end, there") {
    CHECK(pair.status_of(write_work(from, to.moved(1, 256))) == IBV_WC_REM_ACCESS_ERR);
  }
  SECTION("a byte before the start, there") {
    CHECK(pair.status_of(write_work(from, to.moved(-1, 256))) == IBV_WC_REM_ACCESS_ERR);
  }
  SECTION("a byte beyond the end, here") {
    CHECK(pair.status_of(write_work(from.moved(1, 256), to)) == IBV_WC_LOC_PROT_ERR);
  }
  SECTION("a key of another protection domain") {
    Region foreign = to;
    foreign.rkey = pair.a.memory.mr()->rkey;
    foreign.addr = from.addr;
    CHECK(pair.status_of(write_work(from, foreign)) == IBV_WC_REM_ACCESS_ERR);
  }
  SECTION("a key that was given back") {
    pair.b.memory.deregister();
    CHECK(pair.status_of(write_work(from, to)) == IBV_WC_REM_ACCESS_ERR);
  }
  SECTION("memory that was not registered for it") {
    Buffer readable(pair.b.pd.get(), 256, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    CHECK(pair.status_of(write_work(from, readable.all())) == IBV_WC_REM_ACCESS_ERR);
    CHECK(readable.is_zero(0, 256));
  }
  SECTION("no receive") {
    CHECK(pair.status_of(write_imm_work(from, to, 1)) == IBV_WC_RNR_RETRY_EXC_ERR);
  }
  SECTION("a receive that is too short") {
    REQUIRE(post(pair.b.qp.get(), recv_work(pair.b.memory.part(0, 8))) == 0);
    CHECK(pair.status_of(send_work(from)) == IBV_WC_REM_INV_REQ_ERR);
  }
  SECTION("a peer that is gone") {
    pair.b.qp.reset();
    CHECK(pair.status_of(write_work(from, to)) == IBV_WC_RETRY_EXC_ERR);
  }
  CHECK(state_of(pair.a.qp.get()) == IBV_QPS_ERR);
  CHECK(pair.status_of(nothing_work()) == IBV_WC_WR_FLUSH_ERR);
}

TEST_CASE("nullverbs: too much inline is refused at once", "[nullverbs]") {
  Pair pair;
  SendWork work = write_work(pair.a.memory.part(0, 65), pair.b.memory.part(0, 65));
  work.flags |= IBV_SEND_INLINE;
  CHECK(post(pair.a.qp.get(), work) == EINVAL);
  work.local[0].length = 64;
  work.local[0].lkey = 0;  // not used for inline data
  CHECK(pair.status_of(work) == IBV_WC_SUCCESS);
}

TEST_CASE("nullverbs: an error flushes the receives", "[nullverbs]") {
  Pair pair;
  REQUIRE(post(pair.a.qp.get(), recv_work(pair.a.memory.all(), 5)) == 0);
  REQUIRE(modify_state(pair.a.qp.get(), IBV_QPS_ERR) == 0);
  const ibv_wc flushed = poll_one(pair.a.cq.get());
  CHECK(flushed.status == IBV_WC_WR_FLUSH_ERR);
  CHECK(flushed.wr_id == 5);
}

// An end that one thread at a time uses, in a thread domain of its own.
struct LoneEnd {
  LoneEnd() {
    BL_MUST(td != nullptr);
    ibv_parent_domain_init_attr parts{};
    parts.pd = pd.get();
    parts.td = td;
    parent.reset(ibv_alloc_parent_domain(context.get(), &parts));
    BL_MUST(parent != nullptr);
    ibv_cq_init_attr_ex wish{};
    wish.cqe = 16;
    wish.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
    wish.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    wish.parent_domain = parent.get();
    ibv_cq_ex* const single = ibv_create_cq_ex(context.get(), &wish);
    BL_MUST(single != nullptr);
    cq.reset(ibv_cq_ex_to_cq(single));
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq.get();
    attr.cap = {16, 16, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    qp.reset(ibv_create_qp(parent.get(), &attr));
    BL_MUST(qp != nullptr);
  }
  LoneEnd(const LoneEnd&) = delete;
  LoneEnd& operator=(const LoneEnd&) = delete;
  ~LoneEnd() {
    qp.reset();
    cq.reset();
    parent.reset();
    ibv_dealloc_td(td);
  }

  ContextPtr context = open_only_device();
  PdPtr pd{ibv_alloc_pd(context.get())};
  Buffer memory{pd.get(), 256};
  ibv_td_init_attr nothing{};
  ibv_td* const td = ibv_alloc_td(context.get(), &nothing);
  PdPtr parent;
  CqPtr cq;
  QpPtr qp;
};

// Two threads poll until they do so at the same time.
TEST_CASE("nullverbs: a second thread inside is noticed, where one was promised", "[nullverbs]") {
  const NullverbsReport& report = *nullverbs_report();
  const std::uint64_t before = report.intrusions;
  const auto deadline = Clock::now() + kPatience;
  const auto poll_until = [&](ibv_cq* cq, auto enough) {
    ibv_wc none{};
    while (!enough() && Clock::now() < deadline) ibv_poll_cq(cq, 1, &none);
  };
  const auto poll_by_two = [&](ibv_cq* cq, auto enough) {
    std::thread other([&] { poll_until(cq, enough); });
    poll_until(cq, enough);
    other.join();
  };
  const auto met = [&] { return __atomic_load_n(&report.intrusions, __ATOMIC_RELAXED) > before; };
  LoneEnd promised;
  End plain;
  int polls = 0;
  poll_by_two(plain.cq.get(),
              [&] { return __atomic_add_fetch(&polls, 1, __ATOMIC_RELAXED) > 100'000; });
  CHECK_FALSE(met());
  poll_by_two(promised.cq.get(), met);
  CHECK(met());
}

}  // namespace
}  // namespace beeline::test
