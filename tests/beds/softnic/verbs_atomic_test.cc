// SPDX-License-Identifier: Apache-2.0
//
// Fetch-and-add and compare-and-swap: values, access rights, refusals, and atomicity.
#include <cstring>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_extras.h"

using namespace beeline::test;

namespace {

constexpr Wire kWire{.access = kAtomicAccess, .max_rd_atomic = 8, .max_dest_rd_atomic = 8};

std::uint64_t word_of(Buffer& buffer, std::size_t offset = 0) {
  std::uint64_t value;
  std::memcpy(&value, buffer.data() + offset, sizeof value);
  return value;
}
void set_word(Buffer& buffer, std::uint64_t value, std::size_t offset = 0) {
  std::memcpy(buffer.data() + offset, &value, sizeof value);
}

// Two words at A, for results, and eight aligned ones at B, to operate on.
struct Scene {
  explicit Scene(const Wire& wire = kWire, int access = kAtomicAccess)
      : pair({.wire = wire}),
        local(pair.a.buffer(16)),
        storage(64 + 8),
        skipped((8 - reinterpret_cast<std::uintptr_t>(storage.data()) % 8) % 8),
        mr(ibv_reg_mr(pair.b.pd.get(), words(), 64, access)) {
    BL_MUST(mr != nullptr);
  }

  std::uint64_t* words() { return reinterpret_cast<std::uint64_t*>(storage.data() + skipped); }
  Region target(std::size_t word = 0) {
    return {reinterpret_cast<std::uint64_t>(words() + word), 8, mr->lkey, mr->rkey};
  }
  Region result(std::size_t word = 0) { return local.part(word * 8, 8); }
  std::uint64_t got(std::size_t word = 0) { return word_of(local, word * 8); }
  ibv_qp* qp() { return pair.a.qp; }
  ibv_wc done() { return poll_one(pair.a.send_cq.get()); }

  Pair pair;
  Buffer local;
  std::vector<std::uint8_t> storage;
  std::size_t skipped;
  MrPtr mr;
};

void check_refused(Scene& scene, const AtomicWork& work, ibv_wc_status status) {
  scene.words()[0] = 5;
  set_word(scene.local, 99);
  REQUIRE(post(scene.qp(), work) == 0);
  const ibv_wc wc = scene.done();
  CHECK(wc.status == status);
  CHECK(wc.wr_id == work.wr_id);
  CHECK(scene.words()[0] == 5);
  CHECK(scene.got() == 99);
}

}  // namespace

TEST_CASE("atomic: fetch-and-add adds and returns the old value", "[softnic][atomic]") {
  Scene scene;
  const auto [before, add] =
      GENERATE(table<std::uint64_t, std::uint64_t>({{0, 1},
                                                    {41, 1},
                                                    {0x0102030405060708, 0x1010101010101010},
                                                    {~std::uint64_t{0}, 2},
                                                    {7, 0},
                                                    {0xFFFFFFFF, 1},
                                                    {10, ~std::uint64_t{0}}}));
  scene.words()[0] = before;
  scene.words()[1] = 0x5555;
  REQUIRE(post(scene.qp(), fetch_add(scene.result(), scene.target(), add, 7)) == 0);
  const ibv_wc wc = scene.done();
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.wr_id == 7);
  CHECK(wc.opcode == IBV_WC_FETCH_ADD);
  CHECK(wc.byte_len == 8);
  CHECK(wc.qp_num == scene.qp()->qp_num);
  CHECK(scene.got() == before);
  CHECK(scene.words()[0] == before + add);
  CHECK(scene.words()[1] == 0x5555);
  CHECK(scene.local.is_zero(8, 8));
  CHECK(scene.local.guards_intact());
}

TEST_CASE("atomic: the returned value may be scattered over several SGEs", "[softnic][atomic]") {
  Scene scene;
  scene.words()[0] = 0x0807060504030201;
  AtomicWork work = fetch_add({}, scene.target(), 1, 1);
  work.local = {scene.local.part(8, 3).sge(), scene.local.part(0, 5).sge()};
  REQUIRE(post(scene.qp(), work) == 0);
  CHECK(scene.done().status == IBV_WC_SUCCESS);
  for (std::size_t i = 0; i < 3; ++i) CHECK(scene.local.data()[8 + i] == i + 1);
  for (std::size_t i = 0; i < 5; ++i) CHECK(scene.local.data()[i] == i + 4);
}

TEST_CASE("atomic: it sees an earlier WRITE and a later READ sees it", "[softnic][atomic]") {
  Scene scene;
  Buffer value = scene.pair.a.buffer(8);
  Buffer back = scene.pair.a.buffer(8);
  for (std::uint64_t i = 1; i <= 200; ++i) {
    set_word(value, i * 1000);
    REQUIRE(post(scene.qp(), unsignaled(write_work(value.all(), scene.target()))) == 0);
    AtomicWork work = fetch_add(scene.result(), scene.target(), 1);
    work.flags = 0;
    REQUIRE(post(scene.qp(), work) == 0);
    REQUIRE(post(scene.qp(), read_work(back.all(), scene.target(), i)) == 0);
    must_complete(scene.pair.a.send_cq.get(), i);
    CHECK(scene.got() == i * 1000);
    CHECK(word_of(back) == i * 1000 + 1);
  }
}

TEST_CASE("atomic: the target program gets no completion", "[softnic][atomic]") {
  Scene scene;
  REQUIRE(post(scene.pair.b.qp, RecvWork{.wr_id = 1}) == 0);
  REQUIRE(post(scene.qp(), fetch_add(scene.result(), scene.target(), 1)) == 0);
  CHECK(scene.done().status == IBV_WC_SUCCESS);
  CHECK(is_empty(scene.pair.b.recv_cq.get()));
  CHECK(is_empty(scene.pair.b.send_cq.get()));
}

TEST_CASE("atomic: it needs only the access right for atomics", "[softnic][atomic]") {
  Wire wire = kWire;
  wire.access = int{IBV_ACCESS_LOCAL_WRITE} | IBV_ACCESS_REMOTE_ATOMIC;
  Scene scene(wire, wire.access);
  REQUIRE(post(scene.qp(), fetch_add(scene.result(), scene.target(), 3)) == 0);
  CHECK(scene.done().status == IBV_WC_SUCCESS);
  CHECK(scene.words()[0] == 3);
}

TEST_CASE("atomic: the end of the region is checked", "[softnic][atomic]") {
  Scene scene;
  SECTION("the word before is not in it") {
    check_refused(scene, fetch_add(scene.result(), scene.target().moved(-8, 8), 1, 1),
                  IBV_WC_REM_ACCESS_ERR);
  }
  SECTION("nor is one that is half behind its end") {
    const MrPtr half(ibv_reg_mr(scene.pair.b.pd.get(), scene.words(), 4, kAtomicAccess));
    REQUIRE(half != nullptr);
    Region target = scene.target();
    target.rkey = half->rkey;
    check_refused(scene, fetch_add(scene.result(), target, 1, 1), IBV_WC_REM_ACCESS_ERR);
  }
}

TEST_CASE("atomic: the returned value needs eight bytes of writable memory", "[softnic][atomic]") {
  Scene scene;
  scene.words()[0] = 5;
  AtomicWork work = fetch_add(scene.result(), scene.target(), 1, 1);
  SECTION("four bytes") { work.local[0].length = 4; }
  SECTION("sixteen") { work.local[0].length = 16; }
  SECTION("none") { work.local.clear(); }
  // Refused by the post or when it runs, and never executed.
  const int rc = post(scene.qp(), work);
  if (rc == 0) {
    const ibv_wc wc = scene.done();
    CHECK(wc.status != IBV_WC_SUCCESS);
    CHECK(wc.wr_id == 1);
  } else {
    CHECK(rc == EINVAL);
    REQUIRE(post(scene.qp(), nothing_work(2)) == 0);
    must_complete(scene.pair.a.send_cq.get(), 2);
  }
  CHECK(scene.words()[0] == 5);
}

TEST_CASE("atomic: inline is refused", "[softnic][atomic]") {
  Scene scene;
  AtomicWork work = fetch_add(scene.result(), scene.target(), 1, 1);
  work.flags |= IBV_SEND_INLINE;
  CHECK(post(scene.qp(), work) == EINVAL);
  CHECK(scene.words()[0] == 0);
}

TEST_CASE("atomic: none is executed after a failure", "[softnic][atomic]") {
  Scene scene;
  REQUIRE(modify_state(scene.qp(), IBV_QPS_ERR) == 0);
  REQUIRE(post(scene.qp(), fetch_add(scene.result(), scene.target(), 1, 1)) == 0);
  CHECK(scene.done().status == IBV_WC_WR_FLUSH_ERR);
  CHECK(scene.words()[0] == 0);
}

TEST_CASE("atomic: the builder makes the same requests", "[softnic][atomic]") {
  Scene scene;
  ibv_qp_init_attr plain = init_attr(scene.pair.a);
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = plain.send_cq;
  attr.recv_cq = plain.recv_cq;
  attr.cap = plain.cap;
  attr.qp_type = IBV_QPT_RC;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = scene.pair.a.pd.get();
  attr.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  const QpPtr owned(ibv_create_qp_ex(scene.pair.a.context.get(), &attr));
  REQUIRE(owned != nullptr);
  connect_both(owned.get(), scene.pair.b.qp, kWire);
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(owned.get());
  scene.words()[3] = 100;
  const Region target = scene.target(3);
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_atomic_fetch_add(qp, target.rkey, target.addr, 11);
  ibv_wr_set_sge(qp, scene.result(0).lkey, scene.result(0).addr, 8);
  qp->wr_id = 2;
  ibv_wr_atomic_cmp_swp(qp, target.rkey, target.addr, 111, 5);
  ibv_wr_set_sge(qp, scene.result(1).lkey, scene.result(1).addr, 8);
  REQUIRE(ibv_wr_complete(qp) == 0);
  const auto done = poll_many(scene.pair.a.send_cq.get(), 2);
  CHECK(done[0].status == IBV_WC_SUCCESS);
  CHECK(done[0].wr_id == 1);
  CHECK(done[0].opcode == IBV_WC_FETCH_ADD);
  CHECK(done[1].status == IBV_WC_SUCCESS);
  CHECK(done[1].wr_id == 2);
  CHECK(done[1].opcode == IBV_WC_COMP_SWAP);
  CHECK(scene.got(0) == 100);
  CHECK(scene.got(1) == 111);
  CHECK(scene.words()[3] == 5);
}

namespace {

constexpr std::size_t kWorkers = 4;
constexpr std::uint64_t kRounds = 1000;

// A worker's queue pair, its returned values, and the word that all workers change.
struct Worker {
  explicit Worker(Peer& peer) : end(peer.rank() % 2 == 0 ? "softnic0" : "softnic1") {
    peer.send(0, address_of(end.qp));
    connect(end.qp, peer.receive<QpAddress>(0), kWire);
    target = peer.receive<Region>(0);
  }

  std::uint64_t run(const AtomicWork& work) {
    BL_MUST_OK(post(end.qp, work));
    must_complete(end.send_cq.get(), work.wr_id);
    return word_of(local);
  }

  Endpoint end;
  Buffer local = end.buffer(8);
  Region target;
};

// Provides three words, waits for all workers, and lets the caller check the words.
PeerBody target_body(void (*check)(const std::vector<std::uint64_t>&)) {
  return [check](Peer& peer) {
    const Nic nic("softnic1");
    std::vector<std::uint64_t> words(3);
    const MrPtr mr(ibv_reg_mr(nic.pd.get(), words.data(), words.size() * 8, kAtomicAccess));
    BL_MUST(mr != nullptr);
    std::vector<QpPtr> qps;
    for (std::size_t worker = 1; worker < peer.count(); ++worker) {
      qps.push_back(make_qp(nic));
      connect(qps.back().get(), peer.receive<QpAddress>(worker), kWire);
      peer.send(worker, address_of(qps.back().get()));
      peer.send(worker, Region{reinterpret_cast<std::uint64_t>(words.data()),
                               static_cast<std::uint32_t>(words.size() * 8), mr->lkey, mr->rkey});
    }
    peer.meet();
    check(words);
  };
}

}  // namespace

TEST_CASE("atomic: no addition is lost between processes", "[softnic][atomic]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  const TestFabric fabric;
  std::vector<PeerBody> bodies(1 + kWorkers, [](Peer& peer) {
    Worker worker(peer);
    std::uint64_t last = 0;
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      const std::uint64_t before =
          worker.run(fetch_add(worker.local.all(), worker.target, (std::uint64_t{1} << 40) + 1, i));
      BL_MUST(i == 1 || before > last);  // the counter only grows
      last = before;
    }
    peer.meet();
  });
  bodies[0] = target_body([](const std::vector<std::uint64_t>& words) {
    BL_MUST(words[0] == kWorkers * kRounds * ((std::uint64_t{1} << 40) + 1));
    BL_MUST(words[1] == 0 && words[2] == 0);
  });
  run_peers(mode, bodies);
}

TEST_CASE("atomic: compare-and-swap works as a lock", "[softnic][atomic]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  const TestFabric fabric;
  // The lock is word 0. Its holder alone reads and writes word 1, in two steps.
  std::vector<PeerBody> bodies(1 + kWorkers, [](Peer& peer) {
    Worker worker(peer);
    Buffer copy = worker.end.buffer(8);
    const Region lock = worker.target.moved(0, 8);
    const Region counter = worker.target.moved(8, 8);
    for (std::uint64_t i = 0; i < 100; ++i) {
      wait_until(
          [&] {
            return worker.run(compare_swap(worker.local.all(), lock, 0, peer.rank(), i)) == 0;
          },
          "the lock");
      BL_MUST_OK(post(worker.end.qp, read_work(copy.all(), counter, i)));
      must_complete(worker.end.send_cq.get(), i);
      set_word(copy, word_of(copy) + 1);
      BL_MUST_OK(post(worker.end.qp, write_work(copy.all(), counter, i)));
      must_complete(worker.end.send_cq.get(), i);
      BL_MUST(worker.run(compare_swap(worker.local.all(), lock, peer.rank(), 0, i)) == peer.rank());
    }
    peer.meet();
  });
  bodies[0] = target_body([](const std::vector<std::uint64_t>& words) {
    BL_MUST(words[0] == 0);
    BL_MUST(words[1] == kWorkers * 100);
  });
  run_peers(mode, bodies);
}
