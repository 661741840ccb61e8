// SPDX-License-Identifier: Apache-2.0
//
// Behavior that hardware may have. For each hazard there is a program that fails with it and a
// correct one that works; without the hazard both work.
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_extras.h"

using namespace beeline::test;
using beeline::UniqueFd;

namespace {

constexpr softnic::HazardSpec kCalm{};
constexpr softnic::HazardSpec kScatter{.scatter = true};
constexpr softnic::HazardSpec kHide{.hide = true};
constexpr softnic::HazardSpec kBunch{.bunch_ns = 30'000'000};
constexpr softnic::HazardSpec kAll{.scatter = true, .hide = true, .bunch_ns = 2'000'000};

constexpr std::size_t kBytes = (1u << 20) + 70001;

softnic::FabricSpec with(const softnic::HazardSpec& hazards) {
  softnic::FabricSpec spec = softnic::default_fabric();
  spec.hazards = hazards;
  return spec;
}

// Counters in memory that forked processes share with their parent.
class SharedCount {
 public:
  SharedCount()
      : word_(
            static_cast<std::uint32_t*>(mmap(nullptr, sizeof(std::uint32_t), PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    BL_MUST(word_ != MAP_FAILED);
  }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;
  ~SharedCount() { munmap(word_, sizeof(std::uint32_t)); }

  void add() { std::atomic_ref(*word_).fetch_add(1); }
  std::uint32_t get() { return std::atomic_ref(*word_).load(); }

 private:
  std::uint32_t* word_;
};

// Memory of a descriptor, as that of a GPU, with its own mapping.
struct HazardExported {
  explicit HazardExported(ibv_pd* pd, std::size_t length = kBytes)
      : size(length),
        fd(make_memfd(length)),
        view(static_cast<std::uint8_t*>(
            mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0))),
        mr(ibv_reg_dmabuf_mr(pd, 0, length, 0, fd.get(), kAtomicAccess)) {
    BL_MUST(view != MAP_FAILED && mr != nullptr);
  }
  HazardExported(const HazardExported&) = delete;
  HazardExported& operator=(const HazardExported&) = delete;
  ~HazardExported() { munmap(view, size); }

  Region part(std::size_t at, std::size_t length) const {
    return {at, static_cast<std::uint32_t>(length), mr->lkey, mr->rkey};
  }
  Region all() const { return part(0, size); }
  bool has(std::uint32_t seed) const { return has_pattern({view, size}, seed); }

  std::size_t size;
  UniqueFd fd;
  std::uint8_t* view;
  MrPtr mr;
};

// Different in each round, and from new memory.
std::uint8_t mark_of(std::uint32_t round) { return static_cast<std::uint8_t>(1 + round % 200); }

constexpr std::size_t kHazardMessage = 200'001;
constexpr std::uint32_t kStop = 0;

// One side writes in each round; the other checks the memory when it assumes that the data has
// arrived. Returns whether it had in every round. The first wrong round is the last one.
using Wait = std::function<void(Endpoint& end, Buffer& memory, std::uint32_t round)>;
bool is_all_data_there(PeerMode mode, const softnic::HazardSpec& hazards, ibv_wr_opcode opcode,
                       std::uint32_t rounds, const Wait& wait) {
  const TestFabric fabric(with(hazards));
  SharedCount torn;
  run_peers(mode, {[=](Peer& peer) {
                     Endpoint end("softnic0");
                     Buffer from = end.buffer(kHazardMessage);
                     connect(end.qp, peer.exchange(address_of(end.qp)));
                     const auto there = peer.receive<Region>(1);
                     for (;;) {
                       const auto round = peer.receive<std::uint32_t>(1);
                       if (round == kStop) break;
                       from.fill(round);
                       from.data()[kHazardMessage - 1] = mark_of(round);
                       SendWork work = write_imm_work(from.all(), there, round, round);
                       work.opcode = opcode;
                       BL_MUST_OK(post(end.qp, work));
                       must_complete(end.send_cq.get(), round);
                     }
                     peer.meet();
                   },
                   [&](Peer& peer) {
                     Endpoint end("softnic1");
                     Buffer memory = end.buffer(kHazardMessage);
                     connect(end.qp, peer.exchange(address_of(end.qp)));
                     peer.send(0, memory.all());
                     BL_MUST_OK(post(end.qp, recv_work(memory.all(), 1)));
                     for (std::uint32_t round = 1; round <= rounds && torn.get() == 0; ++round) {
                       peer.send(0, round);
                       wait(end, memory, round);
                       if (!has_pattern(memory.bytes(0, kHazardMessage - 1), round)) torn.add();
                       BL_MUST(memory.guards_intact());
                       if (opcode != IBV_WR_RDMA_WRITE) {
                         BL_MUST_OK(post(end.qp, recv_work(memory.all(), round + 1)));
                       }
                     }
                     peer.send(0, kStop);
                     peer.meet();
                   }});
  return torn.get() == 0;
}

// Assumes that the last byte of a message is written last, which is often true.
bool naive_scatter(PeerMode mode, const softnic::HazardSpec& hazards, std::uint32_t rounds) {
  return is_all_data_there(
      mode, hazards, IBV_WR_RDMA_WRITE, rounds, [](Endpoint&, Buffer& memory, std::uint32_t round) {
        wait_until([&] { return memory.peek(kHazardMessage - 1) == mark_of(round); },
                   "the last byte");
      });
}

// Waits for the completion.
bool careful_scatter(PeerMode mode, const softnic::HazardSpec& hazards, ibv_wr_opcode opcode) {
  return is_all_data_there(
      mode, hazards, opcode, 20,
      [](Endpoint& end, Buffer&, std::uint32_t round) { must_complete(end.recv_cq.get(), round); });
}

// Messages arrive in a descriptor's memory. Returns whether the program sees each of them.
bool has_seen_all(const softnic::HazardSpec& hazards, ibv_wr_opcode opcode, bool flushes) {
  const TestFabric fabric(with(hazards));
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  connect_both(a.qp, b.qp);
  Flusher flusher(b);
  Buffer from = a.buffer(kBytes);
  const HazardExported into(b.pd.get());
  bool seen = true;
  for (std::uint32_t round = 1; round <= 5; ++round) {
    from.fill(round);
    BL_MUST_OK(post(b.qp, recv_work(into.all(), round)));
    SendWork work = write_imm_work(from.all(), into.all(), round, round);
    work.opcode = opcode;
    BL_MUST_OK(post(a.qp, work));
    must_complete(b.recv_cq.get(), round);
    must_complete(a.send_cq.get(), round);
    if (flushes) flusher.flush(into.all());
    seen = into.has(round) && seen;
  }
  return seen;
}

bool naive_hide(const softnic::HazardSpec& hazards, ibv_wr_opcode opcode) {
  return has_seen_all(hazards, opcode, false);
}
bool careful_hide(const softnic::HazardSpec& hazards, ibv_wr_opcode opcode) {
  return has_seen_all(hazards, opcode, true);
}

// A message, and then a flag in memory: when the flag is set, the completion of the message exists.
// `take` gets the completion.
bool has_taken_all(PeerMode mode, const softnic::HazardSpec& hazards,
                   const std::function<bool(ibv_comp_channel*, ibv_cq*, std::uint64_t)>& take) {
  constexpr std::uint64_t kMessages = 5;
  const TestFabric fabric(with(hazards));
  SharedCount taken;
  run_peers(mode, {[](Peer& peer) {
                     Endpoint end("softnic0");
                     Buffer flag = end.buffer(8);
                     connect(end.qp, peer.exchange(address_of(end.qp)));
                     const auto there = peer.receive<Region>(1);
                     for (std::uint64_t i = 1; i <= kMessages; ++i) {
                       flag.data()[0] = static_cast<std::uint8_t>(i);
                       BL_MUST_OK(post(end.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}));
                       BL_MUST_OK(post(end.qp, write_work(flag.part(0, 1), there, i)));
                       poll_many(end.send_cq.get(), 2);
                       if (i < kMessages) peer.receive<std::uint64_t>(1);
                     }
                     peer.meet();
                   },
                   [&](Peer& peer) {
                     const Nic nic("softnic1");
                     const ChannelPtr channel = make_channel(nic.context.get());
                     const CqPtr cq = make_cq(channel.get(), 16);
                     ibv_qp_init_attr attr = init_attr(nic);
                     attr.recv_cq = cq.get();
                     const QpPtr qp(ibv_create_qp(nic.pd.get(), &attr));
                     BL_MUST(qp != nullptr);
                     Buffer flag(nic.pd.get(), 8);
                     connect(qp.get(), peer.exchange(address_of(qp.get())));
                     for (std::uint64_t i = 1; i <= kMessages; ++i) {
                       BL_MUST_OK(post(qp.get(), RecvWork{.wr_id = i}));
                       if (i == 1) {
                         peer.send(0, flag.all());
                       } else {
                         peer.send(0, i);  // there is a receive for the next one
                       }
                       wait_until([&] { return flag.peek(0) == i; }, "the flag");
                       if (take(channel.get(), cq.get(), i)) {
                         taken.add();
                       } else {
                         must_complete(cq.get(), i);  // late, but not lost
                       }
                     }
                     peer.meet();
                   }});
  return taken.get() == kMessages;
}

// Gives up after this many empty polls.
bool naive_bunch(PeerMode mode, const softnic::HazardSpec& hazards) {
  return has_taken_all(mode, hazards, [](ibv_comp_channel*, ibv_cq* cq, std::uint64_t) {
    ibv_wc wc{};
    for (int tries = 0; tries < 50; ++tries) {
      if (ibv_poll_cq(cq, 1, &wc) == 1) return wc.status == IBV_WC_SUCCESS;
    }
    return false;
  });
}

bool careful_bunch(PeerMode mode, const softnic::HazardSpec& hazards) {
  return has_taken_all(mode, hazards, [](ibv_comp_channel*, ibv_cq* cq, std::uint64_t wr_id) {
    must_complete(cq, wr_id);
    return true;
  });
}

bool asleep_bunch(PeerMode mode, const softnic::HazardSpec& hazards) {
  return has_taken_all(mode, hazards,
                       [](ibv_comp_channel* channel, ibv_cq* cq, std::uint64_t wr_id) {
                         ibv_wc wc{};
                         for (;;) {
                           BL_MUST_OK(ibv_req_notify_cq(cq, 0));
                           if (ibv_poll_cq(cq, 1, &wc) == 1)
                             return wc.status == IBV_WC_SUCCESS && wc.wr_id == wr_id;
                           ibv_ack_cq_events(next_cq_event(channel), 1);
                         }
                       });
}

}  // namespace

TEST_CASE("hazard: payload is written in any order", "[softnic][hazard]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  CHECK(naive_scatter(mode, kCalm, 20));
  CHECK_FALSE(naive_scatter(mode, kScatter, 1000));
}

TEST_CASE("hazard: scattered payload is complete at its completion", "[softnic][hazard]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  CHECK(careful_scatter(mode, kScatter, IBV_WR_RDMA_WRITE_WITH_IMM));
  CHECK(careful_scatter(mode, kScatter, IBV_WR_SEND));
}

TEST_CASE("hazard: a command of the device takes time", "[softnic][hazard]") {
  constexpr std::chrono::milliseconds kEach{3};
  const bool is_one_device = GENERATE(false, true);
  const auto ns = is_one_device ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(kEach);
  const TestFabric fabric(with({.command_ns = static_cast<std::uint64_t>(ns.count())}));
  if (is_one_device) fabric.command("h0/softnic0", "command=3ms");
  const auto begin = std::chrono::steady_clock::now();
  {
    Endpoint a("softnic0");  // two completion queues, a queue pair, its state
    Buffer memory = a.buffer(100);
  }
  CHECK(std::chrono::steady_clock::now() - begin >= 6 * kEach);
}

TEST_CASE("hazard: scattered payload is right with many SGEs on both sides", "[softnic][hazard]") {
  const TestFabric fabric(with(kScatter));
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  connect_both(a.qp, b.qp);
  Buffer from = a.buffer(300000);
  Buffer into = b.buffer(300000);
  for (std::uint32_t round = 1; round <= 50; ++round) {
    from.fill(round);
    std::memset(into.data(), 0, into.size());
    SendWork work{.opcode = IBV_WR_SEND, .wr_id = round};
    work.local = {from.part(0, round).sge(), from.part(round, 70000).sge(),
                  from.part(70000 + round, 150000).sge()};
    RecvWork receive{.wr_id = round};
    const std::size_t first = std::size_t{3} * round;
    receive.local = {into.part(0, first).sge(), into.part(first, 1).sge(),
                     into.part(first + 1, 299000).sge()};
    REQUIRE(post(b.qp, receive) == 0);
    REQUIRE(post(a.qp, work) == 0);
    must_complete(b.recv_cq.get(), round);
    must_complete(a.send_cq.get(), round);
    const std::size_t sent = 220000 + round;
    REQUIRE(has_pattern(into.bytes(0, sent), round));
    REQUIRE(into.is_zero(sent, into.size() - sent));
  }
}

TEST_CASE("hazard: a completion does not make bytes in dma-buf memory visible",
          "[softnic][hazard]") {
  const auto opcode = GENERATE(IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM);
  CHECK(naive_hide(kCalm, opcode));
  CHECK_FALSE(naive_hide(kHide, opcode));
  CHECK(careful_hide(kHide, opcode));
}

TEST_CASE("hazard: writes to ordinary memory are not deferred", "[softnic][hazard]") {
  const TestFabric fabric(with(kHide));
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  connect_both(a.qp, b.qp);
  Buffer from = a.buffer(1000);
  Buffer into = b.buffer(1000);
  from.fill(1);
  REQUIRE(post(b.qp, recv_work(into.all(), 1)) == 0);
  REQUIRE(post(a.qp, send_work(from.all(), 1)) == 0);
  must_complete(b.recv_cq.get(), 1);
  CHECK(into.has(1));
}

TEST_CASE("hazard: a device reads the new bytes of deferred writes", "[softnic][hazard]") {
  const TestFabric fabric(with(kHide));
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  const Wire wire{.access = kAtomicAccess};
  connect_both(a.qp, b.qp, wire);
  Buffer from = a.buffer(4096);
  Buffer back = a.buffer(4096);
  const HazardExported into(b.pd.get(), 4096);
  from.fill(1);
  REQUIRE(post(a.qp, write_work(from.all(), into.all(), 1)) == 0);
  must_complete(a.send_cq.get(), 1);
  CHECK_FALSE(into.has(1));
  SECTION("the writer's READ") {
    REQUIRE(post(a.qp, read_work(back.all(), into.all(), 2)) == 0);
    must_complete(a.send_cq.get(), 2);
    CHECK(back.has(1));
  }
  SECTION("the owner's SEND") {
    REQUIRE(post(a.qp, recv_work(back.all(), 2)) == 0);
    REQUIRE(post(b.qp, send_work(into.all(), 2)) == 0);
    must_complete(a.recv_cq.get(), 2);
    CHECK(back.has(1));
  }
  SECTION("an atomic") {
    REQUIRE(post(a.qp, fetch_add(back.part(0, 8), into.part(8, 8), 0, 2)) == 0);
    must_complete(a.send_cq.get(), 2);
    CHECK(has_pattern(back.bytes(0, 8), 1, 8));
  }
}

TEST_CASE("hazard: deferred writes are applied in order", "[softnic][hazard]") {
  const TestFabric fabric(with(kHide));
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  connect_both(a.qp, b.qp);
  Flusher flusher(b);
  Buffer from = a.buffer(64);
  const HazardExported into(b.pd.get(), 4096);
  // More overlapping writes than the list can hold.
  for (std::uint32_t i = 0; i < 3000; ++i) {
    std::memset(from.data(), static_cast<int>(i), 64);
    REQUIRE(post(a.qp, write_work(from.all(), into.part(i % 100, 64), i)) == 0);
    must_complete(a.send_cq.get(), i);
  }
  flusher.flush(into.all());
  for (std::uint32_t i = 2900; i < 3000; ++i) {
    const std::uint32_t at = i % 100;
    CHECK(into.view[at] == static_cast<std::uint8_t>(i));
  }
  CHECK(into.view[99 + 63] == static_cast<std::uint8_t>(2999));
}

TEST_CASE("hazard: a flush without deferred writes changes nothing", "[softnic][hazard]") {
  const TestFabric fabric(with(kHide));
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  connect_both(a.qp, b.qp);
  Flusher flusher(b);
  Buffer from = a.buffer(64);
  const HazardExported into(b.pd.get(), 4096);
  from.fill(1);
  REQUIRE(post(a.qp, write_work(from.all(), into.part(0, 64), 1)) == 0);
  must_complete(a.send_cq.get(), 1);
  flusher.flush(into.all());
  CHECK(has_pattern({into.view, 64}, 1));
  std::memset(into.view, 0x5A, 4096);  // the program's own writes
  flusher.flush(into.all());
  CHECK(std::all_of(into.view, into.view + 4096, [](std::uint8_t byte) { return byte == 0x5A; }));
}

TEST_CASE("hazard: completions appear late and in bunches", "[softnic][hazard]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  CHECK(naive_bunch(mode, kCalm));
  CHECK_FALSE(naive_bunch(mode, kBunch));
  CHECK(careful_bunch(mode, kBunch));
  CHECK(asleep_bunch(mode, kBunch));
}

TEST_CASE("hazard: completions of a bunch keep their order, flushed ones included",
          "[softnic][hazard]") {
  const TestFabric fabric(with(kBunch));
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  connect_both(a.qp, b.qp);
  for (std::uint64_t i = 0; i < 20; ++i) REQUIRE(post(b.qp, RecvWork{.wr_id = i}) == 0);
  for (std::uint64_t i = 0; i < 10; ++i) {
    REQUIRE(post(a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}) == 0);
  }
  for (std::uint64_t i = 0; i < 10; ++i) must_complete(a.send_cq.get(), i);
  REQUIRE(modify_state(b.qp, IBV_QPS_ERR) == 0);
  for (std::uint64_t i = 0; i < 10; ++i) must_complete(b.recv_cq.get(), i);
  for (std::uint64_t i = 10; i < 20; ++i) {
    const ibv_wc wc = poll_one(b.recv_cq.get());
    CHECK(wc.wr_id == i);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_CASE("hazard: a careful program works with all of them at once", "[softnic][hazard]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  CHECK(careful_scatter(mode, kAll, IBV_WR_RDMA_WRITE_WITH_IMM));
  CHECK(careful_hide(kAll, IBV_WR_SEND));
  CHECK(asleep_bunch(mode, kAll));
}

TEST_CASE("hazard: the data of a READ is not overwritten by an older deferred write",
          "[softnic][hazard]") {
  constexpr std::size_t kSize = 256;
  const TestFabric fabric(with(kHide));
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  connect_both(a.qp, b.qp);
  const HazardExported into(b.pd.get(), kSize);
  Buffer older = a.buffer(kSize);
  Buffer newer = a.buffer(kSize);
  older.fill(1);
  newer.fill(2);
  REQUIRE(post(a.qp, write_work(older.all(), into.all(), 1)) == 0);
  must_complete(a.send_cq.get(), 1);
  REQUIRE_FALSE(into.has(1));
  REQUIRE(post(b.qp, read_work(into.all(), newer.all(), 2)) == 0);
  must_complete(b.send_cq.get(), 2);
  REQUIRE(post(a.qp, read_work(older.part(0, 1), into.part(0, 1), 3)) ==
          0);  // applies deferred writes
  must_complete(a.send_cq.get(), 3);
  CHECK(into.has(2));
}
